"""A trial between two ways to predict, decided by the labels that arrive."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torch import Tensor

from attakit.queries import Answer, SampleId

_LATEST = 60  # judged samples that count: the stream may change its kind
_MOST = 2.0  # that one sample may count, so that a single surprise does not decide
_SMALLEST = 1e-8


class Trial:
    """Compares two predictions of samples that are asked about, made before their labels came.

    Examples
    --------
    >>> import torch
    >>> from attakit.queries import Query
    >>> trial = Trial()
    >>> trial.hold(["a"], torch.tensor([[0.5, 0.5]]), torch.tensor([[0.1, 0.9]]))
    >>> trial.judge([Answer(Query(SampleId("a"), 0), 0, "me")])
    >>> trial.second_is_better
    False
    """

    def __init__(self) -> None:
        self._open: dict[SampleId, list[list[float]]] = {}
        self._gains: dict[SampleId, float] = {}

    @property
    def second_is_better(self) -> bool:
        """Whether the second way has the greater likelihood so far; true before any label."""
        return sum(self._gains.values()) >= 0

    def hold(self, samples: Sequence[str], first: Tensor, second: Tensor) -> None:
        """Remember two predictions (probabilities) of samples until their labels come."""
        both = (first.clamp(min=_SMALLEST).log(), second.clamp(min=_SMALLEST).log())
        for name, one, other in zip(samples, both[0].tolist(), both[1].tolist(), strict=True):
            self._open[SampleId(name)] = [one, other]

    def judge(self, answers: Sequence[Answer]) -> None:
        """Compare the predictions of samples whose label is known now."""
        for answer in answers:
            held = self._open.pop(answer.query.sample, None)
            if held is not None and answer.label is not None:
                gain = held[1][answer.label] - held[0][answer.label]
                self._gains[answer.query.sample] = max(-_MOST, min(_MOST, gain))
        for name in list(self._gains)[:-_LATEST]:
            del self._gains[name]

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove what samples said."""
        for name in samples:
            self._open.pop(name, None)
            self._gains.pop(name, None)

    def state_dict(self) -> dict[str, Any]:
        return {
            "open": {str(name): both for name, both in self._open.items()},
            "gains": {str(name): gain for name, gain in self._gains.items()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._open = {SampleId(name): both for name, both in state["open"].items()}
        self._gains = {SampleId(name): gain for name, gain in state["gains"].items()}
