import csv
import json

import numpy as np
import pytest

from attakit.bench.run import run_experiment
from attakit.build.data import load_task
from attakit.build.models import pretrain
from attakit.errors import AttaError, SettingError, StreamError
from attakit.settings.load import parse_experiment

FURTHER = [("red", "dog"), ("blue", "cat")]
COLUMNS = ["day", "site", "age", "colour", "kind"]


def write_table(file, change=lambda row: row):
    sites = ["north", "south", "east"]
    rows = [
        (f"2024-0{1 + number // 20}-01", sites[number // 20], number % 7, *FURTHER[number % 2])
        for number in range(60)
    ]
    with file.open("w", newline="") as out:
        csv.writer(out).writerows([COLUMNS, *(change(row) for row in rows)])


@pytest.fixture
def folder(tmp_path):
    write_table(tmp_path / "rows.csv")
    return tmp_path


def table_stream(folder, source="north", targets=(), **own):
    named = {"file": str(folder / "rows.csv"), "label": "kind", "domain": "site", **own}
    given = {key: value for key, value in named.items() if value is not None}
    stream = {"name": "table", "targets": list(targets), "table": given}
    return {**stream, **({"source": source} if source else {})}


def load(stream):
    return load_task(parse_experiment({"stream": stream}).stream)


def test_a_table_becomes_a_source_and_targets(folder):
    task = load(table_stream(folder))
    assert task.classes == ("cat", "dog")
    assert list(task.targets.parts) == ["south", "east"]
    assert (len(task.source_train), len(task.source_test)) == (16, 4)
    assert task.targets.shape == (4,)  # a month, age, and two colours
    assert task.targets.parts["south"].names[0] == "south/21"


def test_columns_are_scaled_by_what_the_model_is_trained_on(folder):
    write_table(
        folder / "rows.csv", lambda row: [*row[:2], row[2] + 100 * (row[1] != "north"), *row[3:]]
    )
    task = load(table_stream(folder, features=["age"]))
    trained = task.source_train.load(range(16)).numpy()
    assert np.allclose([trained.mean(), trained.std()], [0, 1], atol=1e-6)
    assert task.targets.parts["south"].load([0]).item() > 20


def test_a_time_column_makes_periods_the_first_of_which_is_the_source(folder):
    task = load(
        table_stream(folder, None, domain=None, time="day", periods="month", features=["age"])
    )
    assert list(task.targets.parts) == ["2024-02", "2024-03"]


def test_a_row_is_shown_with_its_values_and_without_its_label(folder):
    task = load(table_stream(folder, features=["age", "colour"]))
    assert task.show("south/21") == {"age": "6", "colour": "red"}
    assert task.show("south/21@2") == {"age": "6", "colour": "red"}
    assert task.where("south/21") == "age = 6, colour = red"


def test_missing_values_are_refused_or_filled(folder):
    write_table(
        folder / "rows.csv",
        lambda row: [*row[:2], "NA" if row[0] > "2024-02" else row[2], *row[3:]],
    )
    with pytest.raises(StreamError, match=r'age has no value in 40 rows, first in row 21.*"fill"'):
        load(table_stream(folder))
    task = load(table_stream(folder, features=["age"], missing="fill"))
    assert task.targets.parts["east"].load([0]).item() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": None}, "set either domain .* or time"),
        ({"time": "day"}, "set either domain .* or time"),
        ({"domain": "sight"}, "Unknown column of .*'sight'. Did you mean 'site'"),
        ({"label": "site"}, "'site' cannot be both label and domain"),
        ({"features": ["kind"]}, "'kind' is the label or the domain"),
        ({"features": ["agee"]}, "Did you mean 'age'"),
        ({"source": None}, "stream.source is missing"),
        ({"source": "nord"}, "Unknown domain 'nord'. Did you mean 'north'"),
        ({"targets": ["north"]}, "'north' is the source"),
        ({"targets": ["south", "south"]}, "stream.targets must be different names"),
        ({"fill": "mean"}, "unknown setting stream.table.fill"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(folder, change, message):
    with pytest.raises(AttaError, match=message):
        load(table_stream(folder, **change))


def test_a_table_is_not_for_other_data_sets(folder):
    stream = {**table_stream(folder), "name": "digits"}
    with pytest.raises(SettingError, match=r'stream\.table is for name = "table"'):
        load(stream)


def write_texts(folder, name="text"):
    words = {"cat": "meow purr", "dog": "bark woof"}
    with (folder / "texts.jsonl").open("w") as out:
        for number in range(60):
            kind, site = ["cat", "dog"][number % 2], ["here", "there"][number // 30]
            cell = words[kind] + (" loudly" if site == "there" else "")
            cell = [2 + len(word) for word in cell.split()] if name == "ids" else cell
            out.write(json.dumps({name: cell, "where": site, "label": kind}) + "\n")


def text_stream(folder, **own):
    named = {"file": str(folder / "texts.jsonl"), "domain": "where", "length": 4, **own}
    return {"name": "text", "source": "here", "text": named}


def test_texts_become_token_ids_with_the_words_of_the_source(folder):
    write_texts(folder)
    task = load(text_stream(folder))
    assert task.targets.shape == (4,)
    meow, purr, loudly, padding = task.targets.parts["there"].load([0])[0].tolist()
    assert 1 < meow < purr  # both come equally often, so by their letters
    assert (loudly, padding) == (1, 0)  # unknown, as the source does not have it
    assert task.show("there/31") == "meow purr loudly"


def test_token_ids_are_taken_as_they_are(folder):
    write_texts(folder, "ids")
    task = load(text_stream(folder, tokens="ids"))
    assert task.targets.parts["there"].load([0]).tolist() == [[6, 6, 8, 0]]
    assert task.show("there/31") == "[6, 6, 8]"


def test_a_tokenizer_of_ones_own_is_imported(folder, monkeypatch):
    write_texts(folder)
    (folder / "tokens_of_this_test.py").write_text(
        "def letters(texts):\n    return [[ord(sign) for sign in text] for text in texts]\n"
        "def one(texts):\n    return [[1]]\n"
        "def none():\n    return []\n"
    )
    monkeypatch.syspath_prepend(folder)
    task = load(text_stream(folder, tokenizer="tokens_of_this_test:letters", length=2))
    assert task.targets.parts["there"].load([0]).tolist() == [[ord("m"), ord("e")]]
    with pytest.raises(StreamError, match="got 1 for 30 texts"):
        load(text_stream(folder, tokenizer="tokens_of_this_test:one"))
    with pytest.raises(SettingError, match="called with one argument"):
        load(text_stream(folder, tokenizer="tokens_of_this_test:none"))
    with pytest.raises(SettingError, match="must be a Python function"):
        load(text_stream(folder, tokenizer="os:system"))


@pytest.mark.parametrize(("kind", "model"), [("table", "small_mlp"), ("text", "small_text")])
def test_rows_and_texts_train_a_model_and_adapt_it(folder, kind, model):
    write_texts(folder)
    stream = table_stream(folder) if kind == "table" else text_stream(folder)
    training = {"updates": 5, "norm": "running", "weights": str(folder / "it.safetensors")}
    tables = {
        "stream": {**stream, "batch_size": 10},
        "model": {"name": model},
        "labels": {"budget": 6},
        "training": training,
        "report": {"folder": str(folder / "run"), "model": True},
    }
    experiment = parse_experiment(tables)
    pretrain(experiment, load_task(experiment.stream))
    tables["model"] = {"name": model, "weights": str(folder / "it.safetensors")}
    end = run_experiment(parse_experiment(tables))
    assert end["labels"] > 0
    assert (folder / "run" / "model.safetensors").exists()


def test_a_model_for_other_inputs_is_refused_with_the_right_one(folder):
    experiment = parse_experiment({"stream": table_stream(folder)})
    with pytest.raises(SettingError, match=r'samples of this stream are rows.*"small_mlp"'):
        pretrain(experiment, load_task(experiment.stream))
