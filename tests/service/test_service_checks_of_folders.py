"""A folder, a database and the classes of a service belong together."""

import json

import pytest

from attakit.errors import SettingError, StateError
from attakit.service.checks import check_compatible
from attakit.service.saved_settings import save_settings, with_saved_method
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
        ({"method": {"name": "tent"}}, "method.name: .* has learned with anchor_head, got tent"),
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

    other = {"name": "anchor_head", "hedge": 0.5}
    check_compatible(settings(tmp_path / "a", method=other, labels={"budget": 900}), storage)


def test_a_folder_keeps_its_method_when_the_file_names_none(tmp_path):
    save_settings(settings(tmp_path, method={"name": "simatta"}))

    kept = with_saved_method(settings(tmp_path, method={"seed": 3}))
    named = with_saved_method(settings(tmp_path, method={"name": "tent"}))

    assert (kept.method.name, kept.method.settings) == ("simatta", {"seed": 3})
    assert named.method.name == "tent"


def save_as_first_version(folder, **tables):
    """Save settings as versions did that knew nothing of defaults."""
    path = save_settings(settings(folder, **tables))
    saved = json.loads(path.read_text())
    del saved["defaults"]
    path.write_text(json.dumps(saved))


FIRST_CLUSTERS = {"cluster_growth": 1.0, "initial_clusters": 10}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"selector": FIRST_CLUSTERS, "trainer": {"name": "balanced"}}),
        (
            {"selector": {"cluster_growth": 4}, "trainer": {"lr": 0.002}},
            {
                "selector": {**FIRST_CLUSTERS, "cluster_growth": 4},
                "trainer": {"name": "balanced", "lr": 0.002},
            },
        ),
        (
            {"selector": "uniform", "trainer": "distilling"},
            {"selector": {"name": "uniform"}, "trainer": {"name": "distilling"}},
        ),
    ],
)
def test_a_folder_of_a_first_version_keeps_its_defaults_of_simatta(tmp_path, given, expected):
    method = {"name": "simatta", **given}
    save_as_first_version(tmp_path, method=method)

    for _ in range(2):  # also once the present version has saved its settings
        begun = with_saved_method(settings(tmp_path, method=method))
        assert begun.method.settings == {"trainable": "all", "norm": "frozen", **expected}
        save_settings(begun)


def test_settings_that_a_folder_was_begun_with_by_default_are_kept_with_its_method(tmp_path):
    """As with the demo, which now says nothing of a method."""
    save_as_first_version(tmp_path, method={"name": "simatta", "trainer": {"lr": 0.002}})

    method = with_saved_method(settings(tmp_path)).method

    assert (method.name, method.settings["trainer"]) == (
        "simatta",
        {"name": "balanced", "lr": 0.002},
    )


def test_a_new_folder_has_the_present_defaults(tmp_path):
    for _ in range(2):
        method = with_saved_method(settings(tmp_path, method={"name": "simatta"}))
        assert method.method.settings == {}
        save_settings(method)


def test_a_setting_that_is_no_longer_given_does_not_stay(tmp_path):
    save_settings(settings(tmp_path, method={"hedge": 0.5}))

    assert with_saved_method(settings(tmp_path)).method.settings == {}


@pytest.mark.parametrize("content", [None, "{}", "no JSON"])
def test_a_folder_without_saved_settings_begins_with_the_default_method(tmp_path, content):
    if content is not None:
        (tmp_path / "settings.json").write_text(content)

    assert with_saved_method(settings(tmp_path)).method.name == "anchor_head"
