"""BADGE: samples whose gradients would be large and different.

Ash, Zhang, Krishnamurthy, Langford and Agarwal, "Deep batch active learning by diverse, uncertain
gradient lower bounds", ICLR 2020, Algorithm 1. https://arxiv.org/abs/1906.03671

The first sample is drawn uniformly, as in k-means++. The public code starts with the largest
gradient.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attakit.randomness import generator
from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.finite import check_finite


class BADGE:
    """Draws samples by the squared distance of their gradients from those drawn before.

    If the prediction were right, the gradient of the last layer is the outer product of p -
    onehot(argmax p) and the features (equation 1). The inner product of two such products is the
    product of the inner products of their parts, so no outer product is ever formed. Every weight
    is 1.

    Parameters
    ----------
    seed
        Seed of the draw.

    Examples
    --------
    >>> features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    >>> logits = torch.tensor([[0.0, 0.0], [0.0, 0.0], [99.0, 0.0], [99.0, 0.0]])
    >>> candidates = Rows(tuple("abcd"), features, logits, torch.ones(4))
    >>> nothing = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))
    >>> selection = BADGE().select(candidates, nothing, limit=3, step=0)
    >>> sorted(selection.samples)[:2]
    ['a', 'b']
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates by k-means++ seeding."""
        positions = askable(candidates, known)
        count = min(limit, len(positions))
        gradients = Gradients(candidates.logits[positions], candidates.features[positions])
        draws = generator(self.seed, "badge", step)
        chosen = seed_plus_plus(gradients, count, draws)
        return selection_of(candidates, [positions[row] for row in chosen])


class Gradients:
    """Gradients of the last layer in factors: residuals (rows, classes) and features (rows, dim).

    On the CPU in double precision, so that every device draws the same samples.

    >>> both = Gradients(torch.zeros(2, 2), torch.tensor([[1.0], [3.0]]))
    >>> both.squared_distances(0).tolist()
    [0.0, 2.0]
    """

    def __init__(self, logits: Tensor, features: Tensor) -> None:
        probabilities = logits.detach().cpu().double().softmax(dim=1)
        likeliest = torch.nn.functional.one_hot(probabilities.argmax(dim=1), probabilities.shape[1])
        self.residuals = probabilities - likeliest
        self.features = features.detach().cpu().double()
        self.squares = _squares(self.residuals) * _squares(self.features)
        check_finite("BADGE", "logits and features", self.squares)

    def __len__(self) -> int:
        return len(self.squares)

    def squared_distances(self, row: int) -> Tensor:
        """|g_i - g_row|² for every i, from |g_i|² + |g_row|² - 2·g_i·g_row."""
        inner = (self.residuals @ self.residuals[row]) * (self.features @ self.features[row])
        distances = (self.squares + self.squares[row] - 2 * inner).clamp(min=0)
        distances[row] = 0
        return distances


def seed_plus_plus(gradients: Gradients, count: int, draws: np.random.Generator) -> list[int]:
    """Draw rows with probabilities proportional to the squared distance from the nearest drawn one.

    If all remaining rows coincide with drawn ones, they have equal probabilities.
    """
    chosen: list[int] = []
    nearest = torch.full((len(gradients),), torch.inf, dtype=torch.double)
    while len(chosen) < count:
        row = _draw(nearest, chosen, draws)
        chosen.append(row)
        nearest = torch.minimum(nearest, gradients.squared_distances(row))
    return chosen


def _draw(nearest: Tensor, chosen: list[int], draws: np.random.Generator) -> int:
    chances = nearest.numpy().copy()
    chances[chosen] = 0
    if not (chosen and chances.any()):
        chances = np.ones(len(nearest))
        chances[chosen] = 0
    return int(draws.choice(len(chances), p=chances / chances.sum()))


def _squares(rows: Tensor) -> Tensor:
    return rows.square().sum(dim=1)
