"""Accuracy of a run's predictions: per step, so far, and per segment of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attakit.queries import SampleId
from attakit.records import StepResult

RightCount = tuple[int, int]  # correct, counted


def percent(count: RightCount) -> float | None:
    """Share of correct answers in percent, or None when nothing was counted.

    >>> percent((3, 4))
    75.0
    """
    correct, counted = count
    return 100.0 * correct / counted if counted else None


class Accuracy:
    """Compares predictions with the true classes, which methods never see.

    A step that was already counted is ignored, so several reporters may share one `Accuracy`.

    Parameters
    ----------
    labels
        The true class of samples. Other samples are not counted.
    segments
        The segment (domain, split) of samples.

    Examples
    --------
    >>> import torch
    >>> from attakit.records import Batch, StepResult, Prediction, Step, Training
    >>> names = (SampleId("a"), SampleId("b"))
    >>> accuracy = Accuracy({names[0]: 0, names[1]: 1}, {names[0]: "day", names[1]: "night"})
    >>> answer = Prediction(torch.tensor([[2.0, 0.0], [2.0, 0.0]]), torch.zeros(2, 1))
    >>> batch = Batch(0, names, torch.zeros(2, 1))
    >>> accuracy.on_step(StepResult(batch, Step(answer), (), Training(), 0.1, 0, 0, 0))
    >>> accuracy.stream, accuracy.segments
    (50.0, {'day': 100.0, 'night': 0.0})
    """

    def __init__(
        self, labels: Mapping[SampleId, int], segments: Mapping[SampleId, str] | None = None
    ) -> None:
        self._labels = labels
        self._segment_of = segments or {}
        self._last_step = -1
        self._total: RightCount = (0, 0)
        self._total_segments: dict[str, RightCount] = {}
        self.step_count: RightCount = (0, 0)  # counts of the last step
        self.step_segments: dict[str, RightCount] = {}

    def on_step(self, result: StepResult) -> None:
        if result.batch.step <= self._last_step:
            return
        self._last_step = result.batch.step
        self.step_count, self.step_segments = (0, 0), {}
        classes = result.step.prediction.logits.argmax(dim=1).tolist()
        for sample, predicted in zip(result.batch.samples, classes, strict=True):
            if sample in self._labels:
                self._count(sample, int(predicted == self._labels[sample]))

    def close(self) -> None:
        """Do nothing."""

    def _count(self, sample: SampleId, correct: int) -> None:
        self.step_count = _plus(self.step_count, correct)
        self._total = _plus(self._total, correct)
        segment = self._segment_of.get(sample)
        if segment is not None:
            for counts in (self.step_segments, self._total_segments):
                counts[segment] = _plus(counts.get(segment, (0, 0)), correct)

    @property
    def stream(self) -> float | None:
        """Accuracy so far, in percent."""
        return percent(self._total)

    @property
    def segments(self) -> dict[str, float | None]:
        """Accuracy so far per segment, in percent, in order of appearance."""
        return {segment: percent(count) for segment, count in self._total_segments.items()}

    def state_dict(self) -> dict[str, Any]:
        return {
            "last_step": self._last_step,
            "step": list(self.step_count),
            "total": list(self._total),
            "step_segments": {name: list(count) for name, count in self.step_segments.items()},
            "total_segments": {name: list(count) for name, count in self._total_segments.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._last_step = state["last_step"]
        self.step_count = _as_count(state["step"])
        self._total = _as_count(state["total"])
        self.step_segments = {k: _as_count(v) for k, v in state["step_segments"].items()}
        self._total_segments = {k: _as_count(v) for k, v in state["total_segments"].items()}


def _plus(count: RightCount, correct: int) -> RightCount:
    return count[0] + correct, count[1] + 1


def _as_count(values: Any) -> RightCount:
    correct, counted = values
    return int(correct), int(counted)
