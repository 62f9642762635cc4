"""A model that answers, from the table [labels.model]; and a run that it labels."""

import pytest

from attakit.bench import run_experiment
from attakit.build.oracles import build_oracle
from attakit.errors import SettingError
from attakit.label import Endpoint, ModelOracle, Team
from attakit.queries import Query, SampleId
from attakit.settings.load import parse_experiment
from attakit.stream import Truth

SAMPLES = dict.fromkeys("ab", "night")
TRUTH = Truth({"a": 1, "b": 1}, SAMPLES, SAMPLES, ("cat", "dog"))
HERE = f"{__name__}:guess"


def guess(samples):
    """Names the first class of what ends in "a", and abstains otherwise."""
    return ["cat" if sample.endswith("a") else None for sample in samples]


def sure_of_zero(samples):
    return [{"0": 0.9, "1": 0.1} if len(sample) % 2 else None for sample in samples]


def labels(**table):
    return parse_experiment({"labels": {"oracle": "model", "model": table}}).labels


def oracle(**table):
    return build_oracle(labels(**table), TRUTH, 0, where="/data/{}".format)


def answers(built):
    built.ask([Query(SampleId(name), 0) for name in "ab"])
    return [(answer.annotator, answer.label) for answer in built.collect()]


def test_a_function_is_imported_and_gets_what_the_samples_are_found_by():
    assert answers(oracle(function=HERE)) == [("model", 0), ("model", None)]


def test_people_answer_the_rest():
    built = oracle(function=HERE, people="known", price=0.1)

    assert isinstance(built, Team)
    assert answers(built) == [("model", 0), ("known", 1)]


def test_an_endpoint_gets_its_settings(monkeypatch):
    monkeypatch.setenv("LABEL_TOKEN", "secret")
    built = oracle(url="https://models/label", token_variable="LABEL_TOKEN", timeout=3, retries=5)

    assert isinstance(built, ModelOracle)
    assert isinstance(built.function, Endpoint)
    assert (built.retries, built.function.timeout, built.function.token) == (5, 3, "secret")
    assert built.function.classes == ["cat", "dog"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"labels\.model must be a table with either a function or a url"),
        (
            {"url": "http://x", "function": "a:b"},
            r"labels\.model must be .*either a function or a url",
        ),
        ({"url": "http://x", "people": "crowd"}, r"labels\.model\.people"),
        ({"url": "http://x", "urll": "y"}, r"labels\.model.*urll"),
    ],
)
def test_a_wrong_table_is_named(table, message):
    with pytest.raises(SettingError, match=message):
        labels(**table)


def test_the_table_and_the_oracle_belong_together():
    model = {"url": "http://x"}
    with pytest.raises(SettingError, match=r"labels\.model must be left out"):
        parse_experiment({"labels": {"oracle": "known", "model": model}})
    with pytest.raises(SettingError, match=r"table \[labels\.model\] is missing"):
        build_oracle(parse_experiment({"labels": {"oracle": "model"}}).labels, TRUTH, 0)
    with pytest.raises(SettingError, match="'NO_SUCH_TOKEN' is not set"):
        oracle(url="http://x", token_variable="NO_SUCH_TOKEN")


def test_a_run_with_a_cheap_model_gets_more_answers_than_its_budget_has_labels(
    tmp_path, quick_digits
):
    experiment = parse_experiment(
        {
            "stream": {"targets": ["outline"], "share": 0.08, "batch_size": 16},
            "method": {"name": "anchor_head"},
            "labels": {
                "budget": 6,
                "oracle": "model",
                "model": {
                    "function": f"{__name__}:sure_of_zero",
                    "people": "known",
                    "price": 0.25,
                },
            },
            "report": {"folder": str(tmp_path / "run"), "post_adaptation": False},
        }
    )
    end = run_experiment(experiment)

    assert end["labels"] > 6
    assert end["cost"] <= 6
