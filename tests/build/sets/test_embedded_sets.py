import pytest

from attakit.build.data import load_task
from attakit.build.models import SOURCE_MODELS, embedded_model, source_classifier
from attakit.errors import SettingError
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment


def test_abalone_goes_from_females_to_males_and_infants():
    pytest.importorskip("sklego")
    task = load_task(StreamTable(name="abalone"))
    assert {name: len(part) for name, part in task.targets.parts.items()} == {
        "male": 1528,
        "infant": 1342,
    }
    assert len(task.source_train) + len(task.source_test) == 1307
    assert task.classes == ("middle", "old", "young")
    assert list(task.show("male/1")) == [
        "length",
        "diameter",
        "height",
        "whole_weight",
        "shucked_weight",
        "viscera_weight",
        "shell_weight",
    ]


def test_names_go_from_english_to_four_languages_and_none_is_two_things():
    pytest.importorskip("babel")
    task = load_task(StreamTable(name="names"))
    assert list(task.targets.parts) == ["Dutch", "German", "French", "Spanish"]
    assert all(len(part) > 1000 for part in task.targets.parts.values())
    dutch = [task.show(name) for name in task.targets.parts["Dutch"].names]
    assert len(set(dutch)) == len(dutch)
    assert "Zwitserland" in dutch


@pytest.mark.parametrize("name", ["abalone", "names"])
def test_they_have_no_settings_of_images_or_files(name):
    with pytest.raises(SettingError, match=r"stream\.size is for images"):
        load_task(StreamTable(name=name, size=32))


def test_their_source_model_is_trained_once_and_cached(tmp_path, monkeypatch):
    pytest.importorskip("sklego")
    monkeypatch.setenv("ATTAKIT_CACHE", str(tmp_path))
    short = parse_experiment({"training": {"updates": 2, "batch_size": 8, "norm": "running"}})
    monkeypatch.setattr("attakit.build.models.ROWS_TRAINING", short.training)
    tables = {"stream": {"name": "abalone"}, "model": {"name": SOURCE_MODELS["abalone"]}}
    experiment = parse_experiment(tables)
    task = load_task(experiment.stream)
    source_classifier(experiment, task)
    assert [file.name.split("-")[0] for file in tmp_path.iterdir()] == ["abalone"]
    embedded_model("abalone", task, lambda *_: pytest.fail("trained again"))
