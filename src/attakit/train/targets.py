"""What people said about samples, as a likelihood of logits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attakit.errors import LabelError


@dataclass(frozen=True, slots=True)
class Targets:
    """What people said about samples: classes, soft answers, or classes that are ruled out.

    Parameters
    ----------
    shares
        One row per sample and one column per class. A row of a known class has a single 1, a soft
        answer has shares that add up to 1. In a row that is `open` every class that is still
        possible has a 1: "not a horse" is a row of ones with a 0 for horse.
    weights
        How much each row counts. 0 leaves it out.
    open
        Which rows say only what is possible. Their likelihood is the total probability of the
        possible classes.

    Examples
    --------
    >>> Targets.of_labels(torch.tensor([2, 0]), classes=3).shares.tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """

    shares: Tensor  # (rows, classes)
    weights: Tensor  # (rows,)
    open: Tensor  # (rows,)

    @staticmethod
    def of_labels(labels: Tensor, classes: int, weights: Tensor | None = None) -> Targets:
        """Targets of samples whose class is known."""
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise LabelError(f"Targets: labels must be 0 to {classes - 1}, got {labels.tolist()}.")
        shares = F.one_hot(labels, classes).double()
        weights = torch.ones_like(labels) if weights is None else weights
        return Targets(shares, weights.double(), torch.zeros_like(labels, dtype=torch.bool))

    @staticmethod
    def of_exclusions(labels: Tensor, classes: int, weights: Tensor | None = None) -> Targets:
        """Targets of samples that are known not to be of a class.

        >>> Targets.of_exclusions(torch.tensor([1]), classes=3).shares.tolist()
        [[1.0, 0.0, 1.0]]
        """
        known = Targets.of_labels(labels, classes, weights)
        return Targets(1 - known.shares, known.weights, ~known.open)

    def take(self, places: Tensor) -> Targets:
        """The rows at some places, given as numbers or as a mask."""
        return Targets(self.shares[places], self.weights[places], self.open[places])

    def join(self, other: Targets) -> Targets:
        """These rows followed by the other's."""
        return Targets(
            torch.cat([self.shares, other.shares]),
            torch.cat([self.weights, other.weights]),
            torch.cat([self.open, other.open]),
        )
