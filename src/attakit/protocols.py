"""The parts of the loop, on one screen. Classes match these by shape; nothing inherits them.

`Oracle` and `Stateful` stand in `attakit.queries`, because labelling works without torch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor

from attakit.nn.classifier import Classifier
from attakit.queries import Answer, Oracle, SampleId, Stateful
from attakit.records import Batch, Prediction, Rows, Selection, Step, StepResult, Training
from attakit.store.anchors import Anchors

__all__ = ["Forgets", "Method", "Oracle", "Reporter", "Selector", "Stateful", "Trainer"]


class Method(Stateful, Protocol):
    """Answers a stream and adapts to it."""

    def predict(self, inputs: Tensor) -> Prediction:
        """Answer without changing anything. Two calls in a row agree."""

    def step(self, batch: Batch, allowance: int) -> Step:
        """Answer the batch, adapt without labels, name at most `allowance` samples to ask about.

        The answer uses the model as it was when the batch arrived.
        """

    def learn(self, answers: Sequence[Answer]) -> Training:
        """Use the labels that have arrived: maybe none, late, or from several batches."""


@runtime_checkable
class Forgets(Protocol):
    """A method that keeps samples, and lets go of some when it must."""

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove inputs and labels of these samples. What was learned from them stays learned."""


class Selector(Protocol):
    """Decides which samples deserve a label."""

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, given what is already covered.

        Pure: the same arguments give the same choice, so asking twice is harmless.
        """


class Trainer(Stateful, Protocol):
    """Turns anchors into weights."""

    def fit(self, model: Classifier, low: Anchors, high: Anchors, step: int) -> Training:
        """Train the model in place on pseudo-labelled (low) and labelled (high) anchors."""


class Reporter(Protocol):
    """Observes a run and never steers it."""

    def on_step(self, result: StepResult) -> None: ...
    def close(self) -> None: ...
