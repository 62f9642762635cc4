"""Conformal prediction sets: a probability threshold for classes, and a certainty score.

Shi, Lyu and Peng, "Annotation-efficient active test-time adaptation with conformal prediction",
2025, the part on conformal scores and their weights. https://arxiv.org/abs/2509.25692

The threshold is that of non-exchangeable conformal risk control (Farinhas et al., ICLR 2024) with
one weight for all calibration samples, computed exactly. The authors' code searches a grid of
10,000 values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from attakit.errors import check_range
from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.finite import check_finite
from attakit.select.label_rate import whole

_SMALLEST, _LARGEST = 1e-50, 1e50  # bounds of weights and scales


class ConformalThreshold:
    """A probability threshold that follows the share of samples it covers.

    Before every batch but the first, the weight w of the calibration samples is divided by a scale
    s. The scale is first multiplied by exp((1 - α) - coverage of the batch before). So low coverage
    of a batch lowers the weight, and with it the threshold.

    Parameters
    ----------
    miscoverage
        α: the share of true classes that the sets may miss.

    Examples
    --------
    >>> import torch
    >>> threshold = ConformalThreshold(miscoverage=0.2)
    >>> threshold.calibrate([0.1, 0.3, 0.5, 0.7, 0.9] * 4)
    0.1
    >>> threshold.observe(torch.tensor([[0.95, 0.05]]), torch.tensor([0]))
    1.0
    """

    def __init__(self, *, miscoverage: float = 0.2) -> None:
        check_range("ConformalThreshold", "miscoverage", miscoverage, above=0, at_most=1)
        self.miscoverage = miscoverage
        self.weight, self.scale = 0.5, 1.0
        self.value = 0.0
        self.coverage: float | None = None  # coverage of the latest batch

    def calibrate(self, scores: Sequence[float]) -> float:
        """Compute the threshold for the next batch. Without scores every class stays in the set.

        Parameters
        ----------
        scores
            The model's probability of the true class, for each calibration sample.
        """
        if self.coverage is not None:
            gap = (1 - self.miscoverage) - self.coverage
            self.scale = _clipped(self.scale * math.exp(gap))
            self.weight = _clipped(self.weight / self.scale)
        self.value = conformal_threshold(scores, self.miscoverage, self.weight)
        self.coverage = None
        return self.value

    def observe(self, probabilities: Tensor, labels: Tensor) -> float:
        """Record which of a batch's own labels are in the sets, and return their share."""
        given = probabilities.gather(1, labels[:, None])
        self.coverage = (given >= self.value).double().mean().item()
        return self.coverage

    def state_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "scale": self.scale, "coverage": self.coverage}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.weight, self.scale = state["weight"], state["scale"]
        self.coverage = state["coverage"]


def conformal_threshold(scores: Sequence[float], miscoverage: float, weight: float = 1.0) -> float:
    """Return the highest τ with (w · #{scores < τ} + 1) / (w · n + 1) ≤ α; 0 if there is none.

    >>> conformal_threshold([0.9, 0.8, 0.7, 0.1], miscoverage=0.5)
    0.7
    >>> conformal_threshold([0.9, 0.8], miscoverage=0.2)
    0.0
    """
    if not scores:
        return 0.0
    misses = whole((miscoverage * (weight * len(scores) + 1) - 1) / weight + 1) - 1
    if misses < 0:
        return 0.0
    return 1.0 if misses >= len(scores) else sorted(scores)[misses]


def certainty(probabilities: Tensor, threshold: float, *, temperature: float, top: int) -> Tensor:
    """Return the certainty of predictions: the mean of their `top` highest smoothed scores.

    The smoothed score of a class is sigmoid((p - τ) / T). With `top = 1` it sorts samples by their
    highest probability, for any τ and T.

    >>> import torch
    >>> certainty(torch.tensor([[0.7, 0.3]]), 0.5, temperature=1.0, top=2)
    tensor([0.5000])
    """
    smoothed = ((probabilities - threshold) / temperature).sigmoid()
    return smoothed.topk(min(top, smoothed.shape[1]), dim=1).values.mean(dim=1)


class LeastCertain:
    """Asks about the samples with the lowest conformal certainty. Every weight is 1.

    Parameters
    ----------
    threshold
        τ: the probability from which a class is in the prediction set.
    temperature
        T of the smoothing.
    top
        How many of the highest scores are averaged.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[9.0, 0.0], [0.0, 0.0]])
    >>> candidates = Rows(("sure", "unsure"), logits, logits, torch.ones(2))
    >>> nothing = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))
    >>> LeastCertain(0.5).select(candidates, nothing, limit=1, step=0).samples
    ('unsure',)
    """

    def __init__(self, threshold: float = 0.0, *, temperature: float = 1.0, top: int = 1) -> None:
        self.threshold = threshold
        self.temperature = temperature
        self.top = top

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, least certain first."""
        del step
        shares = candidates.logits.double().softmax(dim=1)
        check_finite("LeastCertain", "logits", shares)
        found = certainty(shares, self.threshold, temperature=self.temperature, top=self.top)
        values = found.tolist()
        order = sorted(askable(candidates, known), key=values.__getitem__)
        return selection_of(candidates, order[: max(limit, 0)])


def _clipped(value: float) -> float:
    return min(max(value, _SMALLEST), _LARGEST)
