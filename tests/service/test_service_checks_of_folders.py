"""A folder, a database and the classes of a service belong together."""

import pytest

from attakit.errors import SettingError, StateError
from attakit.service.checks import check_compatible
from attakit.service.storage.rows import Turn
from attakit.settings.load import parse_service


def settings(folder, *classes, **tables):
    named = {"folder": str(folder), "classes": classes or ("cat", "dog")}
    return parse_service(named | tables)


def test_a_service_can_be_started_again_and_its_folder_moved(storage, tmp_path):
    check_compatible(settings(tmp_path / "a"), storage)
    check_compatible(settings(tmp_path / "a"), storage)

    (tmp_path / "a").rename(tmp_path / "b")

    check_compatible(settings(tmp_path / "b"), storage)


def test_a_database_serves_one_folder_only(storage, tmp_path):
    check_compatible(settings(tmp_path / "a"), storage)

    with pytest.raises(StateError, match="belongs to a service in another folder than"):
        check_compatible(settings(tmp_path / "b"), storage)


@pytest.mark.parametrize("classes", [("dog", "cat"), ("cat", "dog", "cow")])
def test_the_classes_of_a_service_stay_what_they_are(storage, tmp_path, classes):
    check_compatible(settings(tmp_path / "a"), storage)

    with pytest.raises(SettingError, match="has the classes cat, dog, in this order, got"):
        check_compatible(settings(tmp_path / "a", *classes), storage)


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ({"method": {"name": "tent"}}, "method.name: .* has learned with simatta, got tent"),
        ({"input": {"size": 64}}, "input: .* has learned with"),
        ({"labels": {"policy": "majority", "answers": 3}}, "answers: .* with 1, got 3"),
    ],
)
def test_what_the_learner_remembers_must_fit(storage, tmp_path, tables, told):
    check_compatible(settings(tmp_path / "a", **tables), storage)
    check_compatible(settings(tmp_path / "a"), storage)  # nothing was learned yet
    storage.turns.plan(Turn(0, (), allowance=0))

    with pytest.raises(SettingError, match=told):
        check_compatible(settings(tmp_path / "a", **tables), storage)


def test_settings_of_the_method_may_change(storage, tmp_path):
    check_compatible(settings(tmp_path / "a"), storage)
    storage.turns.plan(Turn(0, (), allowance=0))

    other = {"name": "simatta", "trainer": {"lr": 1e-5}}
    check_compatible(settings(tmp_path / "a", method=other, labels={"budget": 900}), storage)
