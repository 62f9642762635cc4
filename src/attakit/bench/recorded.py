"""What a run records for `attakit analyse`: features of its sets, by the source model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from attakit.bench.build import draw_inputs
from attakit.bench.run_state import RunState
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.protocols import Method
from attakit.report.features import FEATURES_FILE, HIGH, LOW, Features

SOURCE_SAMPLES = 500


def build_features(
    state: RunState, source_model: Classifier, folder: Path, resume_after: int | None
) -> Features:
    """The reporter of features of a run."""
    test, seed = state.task.source_test, state.experiment.seed
    return Features(
        folder / FEATURES_FILE,
        encode=lambda inputs: _features(source_model, inputs),
        anchors=anchors_of(state.method),
        source=None if test is None else draw_inputs(test, seed, SOURCE_SAMPLES),
        seed=seed,
        resume_after=resume_after,
    )


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
