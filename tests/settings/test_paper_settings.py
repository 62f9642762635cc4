import tomllib
from pathlib import Path

import pytest

from attakit.build.methods import check_method_table
from attakit.errors import SettingError
from attakit.settings.experiment import MethodTable
from attakit.settings.load import parse_experiment, parse_service
from attakit.settings.paper_settings import PAPER_SETTINGS

ROOT = Path(__file__).parents[2]


def written(**settings):
    return parse_experiment({"method": {"as_in_paper": True, **settings}}).method.settings


def test_as_in_paper_stands_for_the_papers_settings():
    assert written() == dict(PAPER_SETTINGS)
    assert written(name="simatta", label="the paper's") == dict(PAPER_SETTINGS)


def test_they_are_those_of_the_papers_tables():
    suite = tomllib.loads((ROOT / "experiments/paper/table-2-pacs.toml").read_text())
    entries = suite["grid"]["methods"]
    table = next(each["method"] for each in entries if each["label"] == "SimATTA (B ≤ 300)")
    table["trainer"].pop("batch_size")  # the trainer's own default
    assert table == {"name": "simatta", **PAPER_SETTINGS}


def test_settings_beside_it_replace_the_papers_one_by_one():
    found = written(
        norm="blended", selector={"cluster_growth": 2.0}, trainer={"weighting": {"rule": 0.5}}
    )
    assert found["norm"] == "blended"
    assert found["selector"] == {**PAPER_SETTINGS["selector"], "cluster_growth": 2.0}
    assert found["trainer"]["weighting"] == {"cold_start_size": 0, "rule": 0.5}
    assert found["trainer"]["max_updates"] == 100


@pytest.mark.parametrize("given", ["uniform", {"name": "uniform"}])
def test_another_selector_gets_none_of_the_papers_settings(given):
    assert written(selector=given)["selector"] == {"name": "uniform"}


@pytest.mark.parametrize("given", ["balanced", {"name": "balanced"}, {}])
def test_the_papers_trainer_may_be_named(given):
    assert written(trainer=given) == dict(PAPER_SETTINGS)


def test_false_changes_nothing():
    assert MethodTable(as_in_paper=False) == MethodTable()


def test_a_service_may_have_it_too():
    tables = {"classes": ["cat", "dog"], "method": {"name": "simatta", "as_in_paper": True}}
    assert parse_service(tables).method.settings == dict(PAPER_SETTINGS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"as_in_paper": "yes"}, "method must be a table whose as_in_paper is true or false, got"),
        ({"name": "tent", "as_in_paper": True}, "Tent: unknown setting 'as_in_paper'"),
        ({"as_in_paper": True, "selector": 3}, "method.selector must be a name or a table, got 3"),
        ({"as_in_paper": True, "trainer": {"lrr": 1}}, "Did you mean 'lr'"),
    ],
)
def test_mistakes_are_named(table, message):
    with pytest.raises(SettingError, match=message):
        check_method_table(parse_experiment({"method": table}).method)
