"""The suite files of the paper: one per table, with names that the code and the paper know."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from attakit.cli import app
from attakit.errors import SettingError
from attakit.paper import LAYOUTS
from attakit.paper.tables.layouts import check_suite
from attakit.paper.tables.numbers import find_table, paper_tables
from attakit.settings import Experiment
from attakit.settings.suite import load_suite, parse_suite
from attakit.stream.order import ORDERS

FOLDER = Path(__file__).parents[3] / "experiments" / "paper"
FILES = sorted(path for path in FOLDER.glob("*.toml") if not path.stem.startswith("source-"))
SOURCES = sorted(FOLDER.glob("source-*.toml"))
METHODS = {"source_only", "batch_norm", "tent", "eata", "cotta", "sar", "simatta", "enhanced"}
SELECTORS = {"uniform", "entropy", "kmeans", "clue", "incremental"}


def read(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def suite(request):
    return request.param.stem, read(request.param)


def test_every_table_and_figure_has_its_files():
    numbers = {path.stem.split("-")[1] for path in FILES}

    assert numbers == {"2", "3", "4", "5", "6", "7", "13"}
    assert len(FILES) == 14


def test_a_suite_is_named_after_its_file_table_and_folder(suite):
    stem, tables = suite

    assert tables.keys() == {"name", "layout", "paper", "folder", "protocol", "base", "grid"}
    assert tables["name"] == stem
    assert tables["folder"] == f"results/{stem}"
    assert stem.startswith(tables["paper"])
    assert tables["protocol"] == "paper"


def test_its_layout_and_table_are_known(suite):
    _, tables = suite
    data_set = tables["base"]["stream"]["name"]

    assert tables["layout"] in LAYOUTS
    if tables["paper"] != "figure-13":  # which prints no numbers
        found = find_table(tables["layout"], data_set)
        assert found.name in {tables["paper"], f"{tables['paper']}-{data_set}"}
        assert {found.row_name(m["label"], 300) for m in tables["grid"]["methods"]} <= {*found.rows}


@pytest.mark.parametrize(
    "number", ["2-pacs", "2-vlcs", "3-tiny-imagenet-c", "5-pacs", "6-office-home"]
)
def test_comparisons_have_all_rows_of_their_table(number):
    tables = read(FOLDER / f"table-{number}.toml")
    table = find_table(tables["layout"], tables["base"]["stream"]["name"])

    assert [m["label"] for m in tables["grid"]["methods"]] == list(table.rows)


def test_its_base_is_made_of_tables_of_an_experiment(suite):
    _, tables = suite

    assert tables["base"].keys() <= {*Experiment.model_fields, "pool"}
    report = tables["base"]["report"]
    assert report.keys() <= set(type(Experiment().report).model_fields)


def test_methods_selectors_and_orders_exist(suite):
    _, tables = suite
    grid = tables["grid"]
    labels = [entry["label"] for entry in grid["methods"]]

    assert len(set(labels)) == len(labels)
    assert {stream.get("order", "random") for stream in grid["streams"]} <= set(ORDERS)
    for entry in grid["methods"]:
        method = entry.get("method", {})
        chosen = method.get("selector", {}).get(
            "name", entry.get("set", {}).get("pool.selector.name")
        )
        assert method.get("name", "simatta") in METHODS
        assert method.get("method", {"name": "tent"})["name"] in METHODS - {"enhanced", "simatta"}
        assert chosen is None or chosen in SELECTORS
        assert entry.get("match", labels[0]) in labels


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_its_weights_are_those_that_a_source_file_trains(path):
    trained = {read(source)["training"]["weights"] for source in SOURCES}
    wanted = read(path)["base"]["model"]["weights"]

    assert wanted in trained or "tiny-imagenet-c" in wanted


def test_the_guide_names_every_suite_and_table():
    guide = (FOLDER.parents[1] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    numbered = [path for path in FILES if "figure" not in path.stem]

    assert [path.name for path in [*numbered, *SOURCES] if path.name not in guide] == []
    assert len(paper_tables()) == 33


def made_suite(**keys):
    return parse_suite({"name": "s", "grid": {"methods": [{"label": "Tent"}]}, **keys})


@pytest.mark.parametrize(
    ("key", "given", "near"),
    [("layout", "ttaa", "tta"), ("paper", "table-22-pacs", "table-2-pacs")],
)
def test_layouts_and_tables_of_the_paper_must_exist(key, given, near):
    with pytest.raises(
        SettingError, match=f"suite: Unknown {key} '{given}'. Did you mean '{near}'"
    ):
        check_suite(made_suite(**{key: given}))


@pytest.mark.parametrize("paper", ["table-2", "table-2-pacs", "table-31", "figure-13", None])
@pytest.mark.parametrize("layout", ["plain", "tta"])
def test_known_layouts_and_tables_of_the_paper_are_accepted(layout, paper):
    check_suite(made_suite(layout=layout, paper=paper))


def test_layouts_and_tables_of_all_suite_files_exist():
    files = [path for path in FOLDER.parent.glob("**/*.toml") if "grid" in read(path)]

    assert len(files) > len(FILES)
    for path in files:
        check_suite(load_suite(path), where=str(path))


def test_an_unknown_layout_stops_a_suite_before_anything_is_run(tmp_path):
    file = tmp_path / "suite.toml"
    file.write_text(
        f'name = "s"\nlayout = "ttaa"\nfolder = "{tmp_path}/results"\n'
        '[[grid.methods]]\nlabel = "Tent"\nmethod = { name = "tent" }\n',
        encoding="utf-8",
    )

    error = CliRunner().invoke(app, ["bench", str(file)]).exception

    assert isinstance(error, SettingError)
    assert str(error).startswith(f"{file}: Unknown layout 'ttaa'. Did you mean 'tta'?")
    assert not (tmp_path / "results").exists()


def rows_of(kind):
    """The tables of all methods of this name, inside of `enhanced` too, in all suite files."""
    every = [row.get("method", {}) for path in FILES for row in read(path)["grid"]["methods"]]
    inside = [table["method"] for table in every if "method" in table]
    return [table for table in every + inside if table.get("name") == kind]


def test_simatta_keeps_every_source_like_sample_and_weighs_by_the_share_alone():
    rows = rows_of("simatta")
    assert len(rows) > 20
    for table in rows:
        assert table["low_entropy_capacity"] == "unlimited"
        assert table["trust_asked"] is True
        assert table["trainer"]["weighting"] == {"cold_start_size": 0}


def test_cotta_is_the_form_that_the_paper_compares_with():
    rows = rows_of("cotta")
    assert len(rows) >= 5
    assert all(table["symmetric"] and table["confidence_bound"] == 0.1 for table in rows)
