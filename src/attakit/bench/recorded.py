"""Extra records of a run: pictures for the report, features for `attakit analyse`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from attakit.bench.run_state import RunState
from attakit.build.models import draw_inputs
from attakit.build.task import Task
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.protocols import KeepsLabelled, KeepsSourceLike, Method, Reporter
from attakit.report.features import FEATURES_FILE, HIGH, LOW, Features
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.settings.experiment import Experiment
from attakit.stream.batches import Truth

SOURCE_SAMPLES = 500


def build_pictures(
    experiment: Experiment, task: Task, truth: Truth, folder: Path, resume_after: int | None
) -> list[Reporter]:
    """Build the reporter of a run's pictures, if the experiment asks for them."""
    if not experiment.report.pictures:
        return []
    pictures = Pictures(
        folder / PICTURES_FILE,
        classes=task.classes,
        segments=truth.segments,
        labels=truth.labels,
        mean=task.mean,
        std=task.std,
        show=task.show,
        resume_after=resume_after,
    )
    return [pictures]


def build_features(state: RunState, folder: Path, resume_after: int | None) -> list[Reporter]:
    """Build the reporter of a run's features, if the experiment asks for them."""
    source_model = state.source_model
    if source_model is None:
        return []
    test, seed = state.task.source_test, state.experiment.seed
    features = Features(
        folder / FEATURES_FILE,
        encode=lambda inputs: _features(source_model, inputs),
        anchors=anchors_of(state.method),
        source=None if test is None else draw_inputs(test, seed, SOURCE_SAMPLES),
        seed=seed,
        resume_after=resume_after,
    )
    return [features]


def anchors_of(method: Method) -> Callable[[], dict[str, Tensor]]:
    """Make a function that reads the inputs of the anchor sets that a method declares.

    A method that stores features of its anchors instead of inputs has nothing to read.
    """

    def read() -> dict[str, Tensor]:
        found = {}
        if isinstance(method, KeepsSourceLike) and len(method.source_like_anchors):
            found[LOW] = method.source_like_anchors.rows.inputs
        if isinstance(method, KeepsLabelled) and len(method.labelled_anchors):
            found[HIGH] = method.labelled_anchors.rows.inputs
        return {name: inputs for name, inputs in found.items() if inputs.numel()}

    return read


def _features(model: Classifier, inputs: Tensor) -> Tensor:
    features: Tensor = model(place(inputs, model.device)).features
    return features
