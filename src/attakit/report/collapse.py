"""Warnings if a method ruins its model: the same answer for all, or exploding weights."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Sequence

from torch import nn

from attakit.records import StepResult
from attakit.report.accuracy import Accuracy

STEPS = 5  # in a row
SAMPLES = 100  # at least, so that a few small batches do not count
_SHARE = 0.98  # share of the samples with the same answer
_GROWTH = 10.0  # growth of the length of all weights as one vector
_RIGHT = 0.5  # a stream with one class for a while is not a collapse

_log = logging.getLogger(__name__)


class CollapseWatch:
    """Warns once if nearly all answers of the last steps are the same and most are wrong.

    Parameters
    ----------
    who
        Label of the method.
    classes
        Names of the classes.
    accuracy
        Counts right answers. It may be shared with other reporters.

    Examples
    --------
    >>> watch = CollapseWatch("tent", ["cat", "dog"], Accuracy({}))
    >>> watch.close()
    """

    def __init__(self, who: str, classes: Sequence[str], accuracy: Accuracy) -> None:
        self._who, self._classes, self._accuracy = who, classes, accuracy
        self._recent: list[tuple[Counter[int], int, int]] = []  # answers, right ones, counted ones
        self._has_warned = False

    def on_step(self, result: StepResult) -> None:
        self._accuracy.on_step(result)
        answers = Counter(result.step.prediction.logits.argmax(dim=1).tolist())
        self._recent = [*self._recent[1 - STEPS :], (answers, *self._accuracy.step_count)]
        if not self._has_warned and len(self._recent) == STEPS:
            self._warn()

    def close(self) -> None:
        """Do nothing."""

    def _warn(self) -> None:
        answers = sum((one for one, _, _ in self._recent), Counter[int]())
        right = sum(each for _, each, _ in self._recent)
        counted = sum(each for _, _, each in self._recent)
        if answers.total() < SAMPLES or not counted or right >= _RIGHT * counted:
            return
        (most, count), *_ = answers.most_common(1)
        if count >= _SHARE * answers.total():
            self._has_warned = True
            _log.warning(
                "%s answers %s to %d of the last %d samples, and %.0f %% are right. The model has "
                "probably collapsed here. If the method trains it, lower its lr.",
                self._who,
                self._classes[most],
                count,
                answers.total(),
                100 * right / counted,
            )


class GrowthWatch:
    """Warns once if the weights of a model have grown far beyond their start values.

    Parameters
    ----------
    who
        Label of the method.
    model
        The adapting model, before the first step.

    Examples
    --------
    >>> watch = GrowthWatch("tent", nn.Linear(2, 2))
    >>> watch.close()
    """

    def __init__(self, who: str, model: nn.Module) -> None:
        self._who, self._model = who, model
        self._before = _length(model)
        self._has_warned = False

    def on_step(self, result: StepResult) -> None:
        if self._has_warned or result.batch.step % STEPS:
            return
        growth = _length(self._model) / self._before if self._before else 0.0
        if growth > _GROWTH:
            self._has_warned = True
            _log.warning(
                "%s has made the weights of its model %.3g times as large as at the start, after "
                "%d steps. Its answers are not reliable. Lower its lr, or leave lr out.",
                self._who,
                growth,
                result.batch.step + 1,
            )

    def close(self) -> None:
        """Do nothing."""


def _length(model: nn.Module) -> float:
    squares = [float(p.detach().double().square().sum()) for p in model.parameters()]
    return math.sqrt(sum(squares))
