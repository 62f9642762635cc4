"""Sliding window: a small batch is answered and learned from together with the last samples.

Statistics and losses of one sample say nothing. With a window of N, a smaller batch passes through
the model after the last samples before it, N together. The method adapts when N new samples have
arrived. The test-time adaptation benchmark of Marsden, Döbler and Yang handles batch size 1 in this
way ("Universal test-time adaptation through weight ensembling, diversity weighting, and prior
correction", WACV 2024, section on single-sample adaptation).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import ClassVar

from torch import Tensor, nn

from attakit.errors import check_count
from attakit.methods.base import BaseMethod
from attakit.nn.classifier import Classifier
from attakit.queries import Allowance, SampleId
from attakit.records import Batch, Prediction, Step
from attakit.store.window import Window


class WindowedMethod(BaseMethod):
    """Processes small batches together with the last samples.

    A subclass overrides `adapt`, and `look` if its answer is more than one pass. Both get the batch
    with the added samples, and the answers for those are dropped.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    window
        Number of samples that pass through the model together, if a batch has fewer. 0 uses every
        batch as it comes.
    """

    stateful: ClassVar[tuple[str, ...]] = ("model", "window")

    def __init__(self, model: nn.Module, *, window: int = 0) -> None:
        super().__init__(model)
        check_count(type(self).__name__, "window", window, at_least=0)
        self.window = Window(window)

    @property
    def followers(self) -> tuple[Classifier, ...]:
        """The models whose blended statistics follow the stream."""
        return (self.model,)

    def predict(self, inputs: Tensor) -> Prediction:
        placed = self.place(inputs)
        with self._held_statistics():
            return _last(self.look(self.window.with_company(placed)), len(placed))

    def look(self, inputs: Tensor) -> Prediction:
        """Answer inputs that are on the device, without changing anything."""
        return self.answer(self.model, inputs)

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        del allowance
        together = self.window.with_company(batch.inputs)
        is_due = self.window.add(batch)
        with self._held_statistics():
            step = self.adapt(together) if is_due else Step(self.look(together))
        if is_due:  # every sample is new then, and counts once
            for model in self.followers:
                model.keep_statistics()
        return replace(step, prediction=_last(step.prediction, len(batch)))

    def adapt(self, inputs: Tensor) -> Step:
        return Step(self.look(inputs))

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove inputs of these samples from the window."""
        self.window.forget(samples)

    @contextmanager
    def _held_statistics(self) -> Iterator[None]:
        with ExitStack() as stack:
            for model in self.followers:
                stack.enter_context(model.held_statistics())
            yield


def _last(prediction: Prediction, count: int) -> Prediction:
    start = len(prediction.logits) - count
    if start == 0:
        return prediction
    return Prediction(prediction.logits[start:], prediction.features[start:])
