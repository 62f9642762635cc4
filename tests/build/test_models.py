from dataclasses import replace

import pytest
import torch

from attakit.bench.score import percent_right, right_answers, score_everything
from attakit.build.data import load_task
from attakit.build.models import cache_folder, digits_model, pretrain, source_classifier
from attakit.build.task import Task
from attakit.errors import ModelError, SettingError, UnknownName
from attakit.methods import SourceOnly
from attakit.nn import SmallCNN
from attakit.nn.weights import save_weights, weights_hash
from attakit.processes.threads import using_threads
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment


@pytest.fixture
def task(quick_digits):
    return load_task(StreamTable())


@pytest.fixture
def quick_training(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTAKIT_CACHE", str(tmp_path / "cache"))
    short = parse_experiment({"training": {"updates": 2, "batch_size": 8, "norm": "running"}})
    monkeypatch.setattr("attakit.build.models.DIGITS_TRAINING", short.training)
    return tmp_path / "cache"


def test_the_digits_model_is_trained_once_and_then_read(task, quick_training):
    updates = []
    first = digits_model(task, lambda update, numbers: updates.append(update))
    assert updates == [1, 2]
    (file,) = quick_training.iterdir()
    assert file.name.startswith("digits-")
    second = digits_model(task, lambda update, numbers: pytest.fail("trained again"))
    assert weights_hash(first) == weights_hash(second)
    assert not second.training


def test_the_digits_model_is_the_same_with_any_number_of_threads(task, quick_training):
    found = set()
    for threads in (1, 2, 3):
        with using_threads(threads):
            found.add(weights_hash(digits_model(task)))
        (file,) = quick_training.iterdir()
        file.unlink()  # is trained again

    assert len(found) == 1


def test_other_training_settings_make_another_model(task, quick_training, monkeypatch):
    digits_model(task)
    other = parse_experiment({"training": {"updates": 1, "batch_size": 8}}).training
    monkeypatch.setattr("attakit.build.models.DIGITS_TRAINING", other)
    digits_model(task)
    assert len(list(quick_training.iterdir())) == 2


def test_the_cache_is_in_the_home_folder_unless_told(monkeypatch, tmp_path):
    monkeypatch.delenv("ATTAKIT_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "attakit"
    monkeypatch.setenv("ATTAKIT_CACHE", str(tmp_path / "other"))
    assert cache_folder() == tmp_path / "other"


def test_the_trained_source_model_knows_its_source(task):
    classifier = source_classifier(parse_experiment({}), task)
    assert percent_right(right_answers(SourceOnly(classifier), task.source_test)) > 90


def test_accuracies_are_percentages_of_all_samples(task):
    model = source_classifier(parse_experiment({}), task)
    shown = []
    outline = Task(task.classes, task.targets.only("outline"))
    scores = score_everything(SourceOnly(model), outline, lambda *counts: shown.append(counts))
    samples = task.targets.parts["outline"]
    given = model(samples.load(range(len(samples.names)))).logits.argmax(dim=1)
    right = (given == torch.tensor(samples.labels)).double().mean()
    assert scores.per_domain() == {"outline": pytest.approx(100 * float(right))}
    assert scores.source() == {}
    assert shown[-1] == (len(samples), len(samples))


def test_weights_come_from_a_file(task, tmp_path):
    save_weights(SmallCNN(), tmp_path / "model.safetensors")
    tables = {"model": {"weights": str(tmp_path / "model.safetensors")}}
    classifier = source_classifier(parse_experiment(tables), task)
    assert classifier.device.type in ("cpu", "cuda", "mps")


def test_a_model_may_be_named_by_its_import_path(task, tmp_path):
    save_weights(SmallCNN(), tmp_path / "own.safetensors")
    tables = {"name": "attakit.nn:SmallCNN", "weights": str(tmp_path / "own.safetensors")}

    model = source_classifier(parse_experiment({"model": tables}), task)

    assert isinstance(model.model, SmallCNN)


def test_weights_of_another_model_are_refused(task, tmp_path):
    save_weights(SmallCNN(width=4), tmp_path / "model.safetensors")
    tables = {"model": {"weights": str(tmp_path / "model.safetensors")}}
    with pytest.raises(ModelError, match="other shapes"):
        source_classifier(parse_experiment(tables), task)


@pytest.mark.parametrize("tables", [{"model": {"name": "resnet18"}}, {"stream": {"name": "pacs"}}])
def test_a_model_without_weights_says_how_to_get_them(task, tables):
    with pytest.raises(SettingError, match=r"model\.weights is missing.*attakit pretrain"):
        source_classifier(parse_experiment(tables), task)


def test_an_unknown_model_is_named_before_its_missing_weights(task):
    with pytest.raises(UnknownName, match=r"Unknown model 'resnet19'\. Did you mean .*'resnet18'"):
        source_classifier(parse_experiment({"model": {"name": "resnet19"}}), task)


def test_an_unknown_device_is_named(task):
    with pytest.raises(SettingError, match="device must be auto"):
        source_classifier(parse_experiment({"model": {"device": "gpu"}}), task)


def test_pretraining_on_colour_images_writes_weights_that_fit(image_tree, tmp_path):
    weights = tmp_path / "deep" / "source.safetensors"
    tables = {
        "stream": {"name": "folders", "root": str(image_tree), "source": "photo", "size": 16},
        "training": {
            "updates": 30,
            "lr": 0.01,
            "norm": "running",
            "validate_every": 10,
            "weights": str(weights),
        },
    }
    experiment = parse_experiment(tables)
    task = load_task(experiment.stream)
    training = pretrain(experiment, task)
    assert len(training.losses) == 30
    assert list(weights.parent.glob("*unfinished*")) == []
    loaded = parse_experiment({**tables, "model": {"weights": str(weights)}})
    method = SourceOnly(source_classifier(loaded, task))
    accuracy = percent_right(right_answers(method, task.source_test))
    assert accuracy == pytest.approx(100 * training.accuracy)


def test_pretraining_can_start_from_weights_for_other_classes(image_tree, tmp_path):
    start = SmallCNN(classes=7, channels=3)
    save_weights(start, tmp_path / "start.safetensors")
    tables = {
        "stream": {"name": "folders", "root": str(image_tree), "source": "photo", "size": 16},
        "model": {"weights": str(tmp_path / "start.safetensors")},
        "training": {"updates": 1, "lr": 1e-9, "weights": str(tmp_path / "end.safetensors")},
    }
    experiment = parse_experiment(tables)
    pretrain(experiment, load_task(experiment.stream))
    from_file = parse_experiment(
        {**tables, "model": {"weights": str(tmp_path / "end.safetensors")}}
    )
    end = source_classifier(from_file, load_task(experiment.stream)).model
    assert torch.allclose(end.block1[0].weight, start.block1[0].weight, atol=1e-6)
    assert end.head.out_features == 2


def test_a_data_set_without_a_source_cannot_be_trained_on(task, tmp_path):
    with pytest.raises(SettingError, match="no source domain"):
        pretrain(parse_experiment({}), replace(task, source_train=None))


def test_a_wrong_file_name_is_told_before_training(task):
    experiment = parse_experiment({"training": {"weights": "source.pt", "updates": 10**9}})
    with pytest.raises(ModelError, match=r"Give it the ending \.safetensors"):
        pretrain(experiment, task)


def test_a_transformer_is_told_the_size_of_the_images(image_tree, tmp_path):
    experiment = parse_experiment(
        {
            "stream": {"name": "folders", "root": str(image_tree), "source": "photo", "size": 32},
            "model": {"name": "vit_tiny_patch16_224", "image_size": 32},
            "training": {"updates": 1, "weights": str(tmp_path / "vit.safetensors")},
        }
    )
    task = load_task(experiment.stream)
    pretrain(experiment, task)
    model = experiment.model.model_copy(update={"weights": experiment.training.weights})
    classifier = source_classifier(experiment.model_copy(update={"model": model}), task)
    prediction = classifier(task.targets.parts["sketch"].load([0, 1]))
    assert prediction.logits.shape == (2, 2)
    assert prediction.features.shape == (2, 192)


def test_mixed_precision_on_a_cpu_is_refused(task):
    experiment = parse_experiment({"model": {"precision": "mixed", "device": "cpu"}})
    with pytest.raises(SettingError, match=r'precision = "mixed" is for GPUs.*on the CPU'):
        source_classifier(experiment, task)
