"""Loss surfaces over the share and the weight of source samples: where they are lowest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Lowest:
    """A low point of a surface."""

    share: float  # λ₀
    weight: float  # w₀
    loss: float


@dataclass(frozen=True, eq=False)
class LossSurface:
    """Losses of models trained with shares λ₀ and weights w₀.

    Parameters
    ----------
    title
        What the losses are.
    shares, weights
        The axes, ascending.
    losses
        (shares, weights); not a number where there is no model.

    Examples
    --------
    >>> losses = np.array([[1.0, 3.0, 5.0], [4.0, 2.0, 3.0], [5.0, 4.0, 3.0]])
    >>> surface = LossSurface("loss", (0.25, 0.5, 0.75), (0.25, 0.5, 0.75), losses)
    >>> surface.lowest()
    Lowest(share=0.25, weight=0.25, loss=1.0)
    >>> [low.weight for low in surface.lowest_per_share()]
    [0.25, 0.5, 0.75]
    """

    title: str
    shares: tuple[float, ...]
    weights: tuple[float, ...]
    losses: NDArray[np.float64]

    def lowest(self) -> Lowest:
        """The lowest point of all."""
        row, column = np.unravel_index(np.nanargmin(self.losses), self.losses.shape)
        return self._point(int(row), int(column))

    def lowest_per_share(self) -> list[Lowest]:
        """The lowest point for each λ₀ that leaves a choice of w₀."""
        rows = np.flatnonzero(np.isfinite(self.losses).sum(axis=1) > 1)
        return [self._point(int(row), int(np.nanargmin(self.losses[row]))) for row in rows]

    def mean_shift(self) -> float:
        """How far the lowest points lie above (below: negative) the line w₀ = λ₀, on average."""
        shifts = [low.weight - low.share for low in self.lowest_per_share()]
        return float(np.mean(shifts)) if shifts else float("nan")

    def _point(self, row: int, column: int) -> Lowest:
        return Lowest(self.shares[row], self.weights[column], float(self.losses[row, column]))


def edges(centres: Sequence[float]) -> NDArray[np.float64]:
    """Borders between cells, half-way from one centre to the next.

    >>> edges([0.0, 1.0]).tolist()
    [-0.5, 0.5, 1.5]
    """
    middle = (np.asarray(centres[1:]) + np.asarray(centres[:-1])) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])
