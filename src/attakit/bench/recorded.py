"""What a run records beside its lines: pictures for the report, features for `attakit analyse`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from attakit.bench.run_state import RunState
from attakit.build.methods import draw_inputs
from attakit.build.task import Task
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.protocols import Method, Reporter
from attakit.report.features import FEATURES_FILE, HIGH, LOW, Features
from attakit.report.pictures import PICTURES_FILE, Pictures
from attakit.settings.experiment import Experiment
from attakit.stream.truth import Truth

SOURCE_SAMPLES = 500


def build_pictures(
    experiment: Experiment, task: Task, truth: Truth, folder: Path, resume_after: int | None
) -> list[Reporter]:
    """The reporter of pictures of a run, if the experiment wants any."""
    if not experiment.report.pictures:
        return []
    pictures = Pictures(
        folder / PICTURES_FILE,
        classes=task.classes,
        segments=truth.segments,
        labels=truth.labels,
        mean=task.mean,
        std=task.std,
        resume_after=resume_after,
    )
    return [pictures]


def build_features(state: RunState, folder: Path, resume_after: int | None) -> list[Reporter]:
    """The reporter of features of a run, if the experiment wants any."""
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
    """Reads the inputs of a method's anchor sets, of those that it has."""
    sets = {LOW: "low_entropy_anchors", HIGH: "high_entropy_anchors"}

    def read() -> dict[str, Tensor]:
        found = {name: getattr(method, attribute, None) for name, attribute in sets.items()}
        return {name: anchors.rows.inputs for name, anchors in found.items() if anchors}

    return read


def _features(model: Classifier, inputs: Tensor) -> Tensor:
    features: Tensor = model(place(inputs, model.device)).features
    return features
