"""What people said about samples, as a likelihood of logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from attakit.errors import LabelError
from attakit.queries import Answer


@dataclass(frozen=True, slots=True)
class Targets:
    """What people said about samples: classes, soft answers, or classes that are ruled out.

    Parameters
    ----------
    shares
        One row per sample and one column per class. A known class is a single 1; a soft answer is
        shares that add up to 1. In an `open` row every class that is still possible has a 1: "not a
        horse" is a row of ones with a 0 for horse.
    weights
        How much each row counts. 0 leaves it out.
    open
        Marks rows that only say what is possible. Their likelihood is the total probability of the
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
        """Return targets for samples whose class is known."""
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise LabelError(f"Targets: labels must be 0 to {classes - 1}, got {labels.tolist()}.")
        shares = F.one_hot(labels, classes).double()
        weights = torch.ones_like(labels) if weights is None else weights
        return Targets(shares, weights.double(), torch.zeros_like(labels, dtype=torch.bool))

    @staticmethod
    def of_exclusions(labels: Tensor, classes: int, weights: Tensor | None = None) -> Targets:
        """Return targets for samples that are known not to be of a class.

        >>> Targets.of_exclusions(torch.tensor([1]), classes=3).shares.tolist()
        [[1.0, 0.0, 1.0]]
        """
        known = Targets.of_labels(labels, classes, weights)
        return Targets(1 - known.shares, known.weights, ~known.open)

    @staticmethod
    def of_answers(answers: Sequence[Answer], classes: int) -> Targets:
        """Return targets for answers that say something, in their order.

        >>> from attakit.queries import Query
        >>> Targets.of_answers([Answer(Query("a", 0), None, "me", among=(0, 2))], 3).shares.tolist()
        [[1.0, 0.0, 1.0]]
        """
        rows = [_shares(answer, classes) for answer in answers]
        is_open = [bool(answer.excluded or answer.among) for answer in answers]
        return Targets(
            torch.tensor(rows, dtype=torch.double).reshape(len(rows), classes),
            torch.tensor([answer.weight for answer in answers], dtype=torch.double),
            torch.tensor(is_open, dtype=torch.bool),
        )

    @staticmethod
    def from_state(state: Mapping[str, Any]) -> Targets:
        return Targets(*(state[part.name] for part in fields(Targets)))

    def state_dict(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def to(self, like: Tensor) -> Targets:
        """Return the same targets with the type and device of a tensor."""
        return Targets(self.shares.to(like), self.weights.to(like), self.open.to(like.device))

    def take(self, places: Tensor) -> Targets:
        """Return the rows at some places, given as numbers or as a mask."""
        return Targets(self.shares[places], self.weights[places], self.open[places])

    def join(self, other: Targets) -> Targets:
        """These rows followed by the other's."""
        return Targets(
            torch.cat([self.shares, other.shares]),
            torch.cat([self.weights, other.weights]),
            torch.cat([self.open, other.open]),
        )

    def losses(self, logits: Tensor) -> Tensor:
        """Return the negative log-likelihood of every row, unweighted and with gradients."""
        known = (self.shares * logits).sum(dim=1)
        possible = torch.where(self.shares > 0, logits, -torch.inf)
        known = torch.where(self.open, possible.logsumexp(dim=1), known)
        return logits.logsumexp(dim=1) - known


def _shares(answer: Answer, classes: int) -> list[float]:
    """Return the row of one answer: shares, or a 1 for every possible class."""
    if answer.excluded:
        return [float(kind not in answer.excluded) for kind in range(classes)]
    if answer.chances is not None:
        return [chance / sum(answer.chances) for chance in answer.chances]
    named = answer.among if answer.label is None else (answer.label,)
    return [float(kind in named) for kind in range(classes)]
