"""Models that `attakit export` can write, with the facts needed to use them."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.build.data import load_task
from attakit.build.models import source_classifier, untrained_model
from attakit.build.task import Task
from attakit.errors import SettingError, StateError
from attakit.nn.export import ModelFacts, read_facts
from attakit.nn.head_files import load_model
from attakit.protocols import Method, ShowsModel
from attakit.settings.experiment import Experiment

Exportable = tuple[nn.Module, ModelFacts]


def exportable_source(experiment: Experiment) -> Exportable:
    """Return the source model of an experiment, before any adaptation."""
    task = load_task(experiment.stream)
    model: nn.Module = source_classifier(experiment, task).model
    return model, describe_model(experiment, task, f"source model for {experiment.stream.name}")


def model_from_file(file: Path) -> Exportable:
    """Return a model from a weights file that also holds its facts.

    The file can only name an attakit or timm model. It cannot name code to import: opening a file
    must not run its author's code.
    """
    facts = read_facts(file)
    if facts is None:
        raise StateError(
            f"{file} holds weights, but does not say of which model. Only files that attakit wrote "
            "with a model can be exported again."
        )
    width = facts.vocabulary or facts.shape[0]
    network = untrained_model(facts.model, len(facts.classes), width, facts.image_size)
    return load_model(network, file), facts


def adapted_model(method: Method) -> nn.Module:
    """Return the adapted copy of the model, if the method declares `ShowsModel`."""
    if not isinstance(method, ShowsModel):
        raise SettingError(
            f"The method {type(method).__name__} does not show its model, so it can be neither "
            f"kept nor exported. Give it a property adapted_model, or leave out report.model."
        )
    return method.adapted_model


def describe_model(experiment: Experiment, task: Task, origin: str) -> ModelFacts:
    """Return the facts needed to use a model of an experiment."""
    return ModelFacts(
        model=experiment.model.name,
        classes=tuple(task.classes),
        shape=tuple(task.targets.shape),
        image_size=experiment.model.image_size,
        vocabulary=task.vocabulary,
        mean=task.mean,
        std=task.std,
        origin=origin,
    )
