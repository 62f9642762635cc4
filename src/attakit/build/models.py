"""Models by name, and source models: from a weights file, or trained once and cached."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from attakit.build.imported import (
    check_outputs,
    check_repeatable,
    imported_model,
    is_import_path,
)
from attakit.build.task import Task
from attakit.errors import SettingError
from attakit.nn.blended import first_convolution
from attakit.nn.classifier import Classifier
from attakit.nn.devices import choose_device, prepare
from attakit.nn.named import OWN_MODELS, check_model_name, named_model
from attakit.nn.source_card import CARD_SAMPLES, card_file, make_card, save_card
from attakit.nn.weights import load_weights, make_room, save_weights, weights_hash
from attakit.processes.threads import using_threads
from attakit.randomness import generator
from attakit.settings.experiment import Experiment, ModelTable, TrainingTable
from attakit.stream.samples import Samples
from attakit.train.source import SourceTraining, train_source

CACHE_VARIABLE = "ATTAKIT_CACHE"

# Data sets in pip packages, and the model that attakit trains for each.
SOURCE_MODELS = {"digits": "small_cnn", "abalone": "small_mlp", "names": "small_text"}
SOURCE_UPDATES = 400

TrainingCallback = Callable[[int, dict[str, float]], None]

# From scratch, so batch-norm statistics are learned too.
DIGITS_TRAINING = TrainingTable(
    updates=SOURCE_UPDATES, lr=1e-3, batch_size=64, norm="running", validate_every=100
)
ROWS_TRAINING = TrainingTable(
    updates=SOURCE_UPDATES, lr=5e-3, batch_size=64, norm="running", validate_every=50
)


def source_classifier(
    experiment: Experiment,
    task: Task,
    progress: TrainingCallback | None = None,
    *,
    weights: Path | None = None,
) -> Classifier:
    """Return the trained source model of an experiment, on its device.

    `weights` is a file to read instead of the experiment's.
    """
    table = experiment.model
    if (file := weights or table.weights) is not None:
        model = _task_model(table, task)
        load_weights(model, file)
    elif is_import_path(table.name):
        model = _task_model(table, task)
        check_repeatable(table.name, model, _task_model(table, task))
    elif SOURCE_MODELS.get(experiment.stream.name) == table.name:
        model = embedded_model(experiment.stream.name, task, progress)
    else:
        check_model_name(table.name)
        raise SettingError(
            f"model.weights is missing: it must be the file of a source model {table.name} for "
            f"{experiment.stream.name}. Train one with `attakit pretrain`, then set model.weights "
            f"to the file it writes."
        )
    classifier = place_model(model, table)
    if is_import_path(table.name):
        some = next(iter(task.targets.parts.values())).load([0, 0])
        check_outputs(table.name, classifier, some, task.classes)
    return classifier


def starting_classifier(
    experiment: Experiment, task: Task, weights: Path | None = None
) -> Classifier:
    """Return the model of an experiment before training on the source: from a file, or random."""
    table = experiment.model
    model = _task_model(table, task)
    if weights is not None:
        load_weights(model, weights, allow_new_head=True)
    return place_model(model, table)


def place_model(model: nn.Module, table: ModelTable) -> Classifier:
    """Return the model as a classifier on the device of its table."""
    device = choose_device(table.device)
    if table.precision == "mixed" and device.type == "cpu":
        # On CPU this is slower, and on some machines it crashes without a message.
        raise SettingError(
            'model.precision = "mixed" is for GPUs, but the model is on the CPU. Leave it out, or '
            "set model.device to a GPU."
        )
    classifier = Classifier(model, features=table.features, precision=table.precision)
    return prepare(classifier.eval(), device)


def digits_model(task: Task, progress: TrainingCallback | None = None) -> nn.Module:
    """Return the digits source model, trained on first use (a few seconds) and cached."""
    return embedded_model("digits", task, progress)


def embedded_model(name: str, task: Task, progress: TrainingCallback | None = None) -> nn.Module:
    """Return the source model of a packaged data set, trained on first use and cached."""
    model = _embedded_architecture(name, task)
    path = _embedded_file(name, model, task)
    if path.exists():
        load_weights(model, path)
    else:
        with using_threads(1):  # the number of threads would change the model
            _train(model, task, _embedded_training(name), seed=0, progress=progress)
        save_weights(model, path)
    return model.eval()


def weights_file(experiment: Experiment, task: Task) -> Path:
    """Return the path of the trained source model of an experiment.

    Weights of a model from the user's own function are written to the cache.
    """
    table = experiment.model
    if table.weights is not None:
        return table.weights
    if not is_import_path(table.name):
        name = experiment.stream.name
        return _embedded_file(name, _embedded_architecture(name, task), task)
    model = _task_model(table, task)
    path = cache_folder() / f"own-{weights_hash(model)[:12]}.safetensors"
    if not path.exists():
        save_weights(model, path)
    return path


def _embedded_architecture(name: str, task: Task) -> nn.Module:
    return untrained_model(SOURCE_MODELS[name], len(task.classes), task.width)


def _embedded_training(name: str) -> TrainingTable:
    return DIGITS_TRAINING if name == "digits" else ROWS_TRAINING


def _embedded_file(name: str, untrained: nn.Module, task: Task) -> Path:
    fingerprint = _fingerprint(untrained, task, _embedded_training(name))
    return cache_folder() / f"{name}-{fingerprint}.safetensors"


def pretrain(
    experiment: Experiment,
    task: Task,
    progress: TrainingCallback | None = None,
) -> SourceTraining:
    """Train a source model with the [training] table, and write its weights.

    Training saves its state next to the weights, and continues from there until it is finished.
    """
    table = experiment.training
    make_room(table.weights)
    model = _task_model(experiment.model, task)
    if experiment.model.weights is not None:
        load_weights(model, experiment.model.weights, allow_new_head=True)
    prepare(model, choose_device(experiment.model.device))
    checkpoint = _unfinished(table.weights)
    training = _train(model, task, table, experiment.seed, progress, checkpoint)
    save_weights(model, table.weights)
    checkpoint.unlink(missing_ok=True)
    if first_convolution(model) is not None:
        write_card(Classifier(model), task, table.weights)
    return training


def write_card(model: Classifier, task: Task, weights: Path) -> Path:
    """Write the source card of a model next to its weights; return its path."""
    if task.source_train is None:
        raise SettingError(
            "This data set has no source domain, so no source card can be made. Use a data set "
            "with one."
        )
    path = card_file(weights)
    save_card(make_card(model, draw_inputs(task.source_train, 0, CARD_SAMPLES)), path)
    return path


def draw_inputs(source: Samples, seed: int, count: int) -> Tensor:
    """Load the inputs of at most `count` samples, drawn at random."""
    return source.load(drawn_positions(source, seed, count))


def drawn_positions(source: Samples, seed: int, count: int) -> list[int]:
    """Return the positions of the samples that `draw_inputs` loads."""
    order = generator(seed, "source inputs").permutation(len(source))
    positions: list[int] = order[:count].tolist()
    return positions


def untrained_model(
    name: str, classes: int, channels: int, image_size: int | None = None
) -> nn.Module:
    """Return an attakit or timm model by name, before training."""
    # timm models expect three channels; some do not accept `in_chans`.
    is_usual = channels == 3 and name not in OWN_MODELS
    return named_model(
        name,
        classes=classes,
        channels=None if is_usual else channels,
        image_size=image_size,
    )


def build_model(table: ModelTable, classes: int, channels: int) -> nn.Module:
    """Return the model of a [model] table, before its weights are loaded.

    The name may be an import path, "package.module:function". The function is called without
    arguments and returns the model.
    """
    if is_import_path(table.name):
        return imported_model(table.name)
    return untrained_model(table.name, classes, channels, table.image_size)


def _task_model(table: ModelTable, task: Task) -> nn.Module:
    _check_kind(table.name, task)
    return build_model(table, len(task.classes), task.width)


def _check_kind(name: str, task: Task) -> None:
    """Raise `SettingError` if a small model is named that is made for other inputs."""
    if task.vocabulary is not None:
        kind, fits = "texts", "small_text"
    elif len(task.targets.shape) == 1:
        kind, fits = "rows", "small_mlp"
    else:
        kind, fits = "images", "small_cnn"
    if name in OWN_MODELS and name != fits:
        raise SettingError(
            f"model.name: {name} does not take {kind}, and the samples of this stream are {kind}. "
            f'Set model.name = "{fits}", or use your own model.'
        )


def _fingerprint(untrained: nn.Module, task: Task, training: TrainingTable) -> str:
    """Return a hash of the training settings, the architecture, the data and torch's version."""
    assert task.source_train is not None
    pixels = task.source_train.load(range(len(task.source_train)))
    # From the bytes, because a sum depends on the number of threads.
    images = hashlib.sha256(pixels.contiguous().numpy().tobytes()).hexdigest()
    described = f"{training} {torch.__version__} {weights_hash(untrained)} {images}"
    return hashlib.sha256(described.encode()).hexdigest()[:12]


def cache_folder() -> Path:
    """Return the cache folder of trained source models."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "attakit"


def _unfinished(weights: Path) -> Path:
    """Return the file where unfinished training of these weights is saved."""
    return weights.with_name(f"{weights.stem}.unfinished.safetensors")


def _train(
    model: nn.Module,
    task: Task,
    table: TrainingTable,
    seed: int,
    progress: TrainingCallback | None = None,
    checkpoint: Path | None = None,
) -> SourceTraining:
    if task.source_train is None:
        raise SettingError(
            "This data set has no source domain to train on. Use a data set with one."
        )
    return train_source(
        model,
        task.source_train,
        validation=task.source_test,
        updates=table.updates,
        lr=table.lr,
        batch_size=table.batch_size,
        trainable=table.trainable,
        norm=table.norm,
        validate_every=table.validate_every,
        keep=table.keep,
        seed=seed,
        progress=progress,
        checkpoint=checkpoint,
    )
