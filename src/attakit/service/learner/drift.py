"""Detect drift of the stream with the source model, which itself never changes.

The adapting model would see a change whenever it learns. ADWIN (Bifet and Gavaldà, SDM 2007) and
the Page-Hinkley test come from river.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from river.drift import ADWIN, PageHinkley
from torch import Tensor

from attakit.nn.entropy import softmax_entropy
from attakit.records import Prediction

What = Literal["entropy", "mix", "distance"]

MEMORY = 2000  # values from which a detector can be rebuilt
BLOCK = 50  # samples per prediction mix
REFERENCE_BLOCKS = 2  # blocks that define what is usual
MIX_TOLERANCE = 0.05  # smaller changes of the mix never count
MIX_THRESHOLD = 0.4  # sum of counted changes that raises an alarm
MIX_BLOCKS = 4  # blocks before the first alarm
_TINY = 1e-12  # features closer than this are equal

_NAMES: dict[What, str] = {
    "entropy": "The uncertainty of the source model",
    "mix": "The distance between the mix of predictions and the usual mix",
    "distance": "The distance between the features and the usual features",
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """A detected change."""

    what: What
    before: float
    after: float

    @property
    def rose(self) -> bool:
        """True if the value rose, which is a reason to worry. A fall is not."""
        return self.after > self.before

    @property
    def text(self) -> str:
        """One sentence for people."""
        moved = "rose" if self.rose else "fell"
        return f"{_NAMES[self.what]} {moved} from {self.before:.2f} to {self.after:.2f}."


@dataclass(frozen=True, slots=True)
class Reading:
    """The monitors' values for a batch; each number is between 0 and 1."""

    entropy: float
    mix: float
    distance: float
    alarms: tuple[Alarm, ...] = ()


class Monitor:
    """A river detector that can be saved, and loaded without running code.

    It is rebuilt from the newest values since its last alarm. If there are too many, the older half
    is dropped. A stopped run and an uninterrupted run drop it at the same value.
    """

    def __init__(self, what: What, delta: float) -> None:
        self.what: What = what
        self.delta = delta
        self.values: list[float] = []
        self._detector = self._fresh()

    def update(self, values: Sequence[float]) -> Alarm | None:
        """Process values, and start over after an alarm."""
        alarm = None
        for value in values:
            self._detector.update(value)
            self.values.append(value)
            if self._detector.drift_detected:
                alarm = Alarm(self.what, *_levels(self.values))
                self._restart([])
        if len(self.values) > 2 * MEMORY:
            self._restart(self.values[-MEMORY:])
        return alarm

    def state_dict(self) -> dict[str, Any]:
        return {"values": torch.tensor(self.values, dtype=torch.float64)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._restart(state["values"].tolist())

    def _restart(self, values: list[float]) -> None:
        self._detector = self._fresh()
        for value in values:
            self._detector.update(value)
        self.values = values

    def _fresh(self) -> Any:
        if self.what == "mix":  # one value for many samples, and ADWIN would react slowly
            return PageHinkley(
                min_instances=MIX_BLOCKS,
                delta=MIX_TOLERANCE,
                threshold=MIX_THRESHOLD,
                mode="up",
            )
        return ADWIN(delta=self.delta)  # type: ignore[no-untyped-call]


class Drift:
    """Watches entropy, prediction mix and features of a stream.

    `delta` is ADWIN's probability of a false alarm.

    Examples
    --------
    >>> drift = Drift()
    >>> sure = Prediction(torch.tensor([[9.0, 0.0]] * 100), torch.zeros(100, 2))
    >>> lost = Prediction(torch.tensor([[0.1, 0.0]] * 100), torch.zeros(100, 2))
    >>> len(drift.observe(sure).alarms), drift.observe(lost).alarms[0].text
    (0, 'The uncertainty of the source model rose from 0.00 to 1.00.')
    """

    def __init__(self, delta: float = 0.002) -> None:
        self._monitors: dict[What, Monitor] = {what: Monitor(what, delta) for what in _NAMES}
        # Only sums, no single samples, so nothing has to be forgotten here.
        self._block = _Sum()  # probabilities of samples in an unfinished block
        self._usual_mix = _Sum()
        self._near = _Sum()  # features of the samples that define what is usual
        self._mix = 0.0

    def observe(self, prediction: Prediction) -> Reading:
        """Process what the source model says about a batch."""
        prediction = Prediction(prediction.logits.detach().cpu(), prediction.features.cpu())
        entropies = _scaled_entropies(prediction.logits)
        distances = self._distances(prediction.features)
        values: dict[What, list[float]] = {
            "entropy": entropies,
            "mix": self._mix_distances(prediction.logits.softmax(dim=1)),
            "distance": distances,
        }
        found = [self._monitors[what].update(several) for what, several in values.items()]
        alarms = tuple(alarm for alarm in found if alarm is not None)
        for alarm in alarms:
            self._reset(alarm.what)
        return Reading(_mean(entropies), self._mix, _mean(distances), alarms)

    def state_dict(self) -> dict[str, Any]:
        return {
            "monitors": {what: one.state_dict() for what, one in self._monitors.items()},
            "block": self._block.state_dict(),
            "usual_mix": self._usual_mix.state_dict(),
            "near": self._near.state_dict(),
            "mix": self._mix,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for what, one in self._monitors.items():
            one.load_state_dict(state["monitors"][what])
        self._block = _Sum(**state["block"])
        self._usual_mix = _Sum(**state["usual_mix"])
        self._near = _Sum(**state["near"])
        self._mix = state["mix"]

    def _mix_distances(self, probabilities: Tensor) -> list[float]:
        """Return the total variation of full blocks' mixes from the usual one."""
        self._block.add(probabilities)
        if self._block.count < BLOCK:
            return []
        block, self._block = self._block, _Sum()
        if self._usual_mix.count < REFERENCE_BLOCKS * BLOCK:
            self._usual_mix.join(block)
            return []
        self._mix = float((block.mean - self._usual_mix.mean).abs().sum() / 2)
        return [self._mix]

    def _distances(self, features: Tensor) -> list[float]:
        """Return how far each sample is from the usual ones; 0.5 is their own typical distance."""
        if self._near.count < BLOCK:
            self._near.add(features)
            return []
        away = (features.double() - self._near.mean).norm(dim=1)
        scaled: list[float] = (away / (away + self._near.spread).clamp_min(_TINY)).tolist()
        return scaled

    def _reset(self, what: What) -> None:
        """After an alarm, the next samples define what is usual."""
        if what == "mix":
            self._usual_mix, self._mix = _Sum(), 0.0
        if what == "distance":
            self._near = _Sum()


@dataclass
class _Sum:
    """Mean and spread of rows that are not stored."""

    count: int = 0
    total: Tensor | None = None  # (dim,)
    squares: float = 0.0  # sum of squared lengths

    def add(self, rows: Tensor) -> None:
        rows = rows.double()
        self.join(_Sum(len(rows), rows.sum(dim=0), float(rows.square().sum())))

    def join(self, other: _Sum) -> None:
        self.count += other.count
        totals = [each for each in (self.total, other.total) if each is not None]
        self.total = torch.stack(totals).sum(dim=0) if totals else None
        self.squares += other.squares

    @property
    def mean(self) -> Tensor:
        assert self.total is not None, "nothing was added yet"
        return self.total / self.count

    @property
    def spread(self) -> float:
        """Root of the mean squared distance from the mean."""
        return math.sqrt(max(0.0, self.squares / self.count - float(self.mean.square().sum())))

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count, "total": self.total, "squares": self.squares}


def _scaled_entropies(logits: Tensor) -> list[float]:
    most = math.log(max(2, logits.shape[1]))
    scaled: list[float] = (softmax_entropy(logits) / most).clamp(0, 1).tolist()
    return scaled


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _levels(values: Sequence[float]) -> tuple[float, float]:
    """Return the means before and after the moment where two levels explain the values best.

    >>> _levels([0.0, 0.25, 1.0, 1.0, 0.25])
    (0.125, 0.75)
    """
    numbers = torch.tensor(values, dtype=torch.float64)
    sums = numbers.cumsum(0)
    before = torch.arange(1, len(numbers))
    after = len(numbers) - before
    low, high = sums[:-1] / before, (sums[-1] - sums[:-1]) / after
    best = int((before * after * (high - low).square()).argmax())  # least squares
    return float(low[best]), float(high[best])
