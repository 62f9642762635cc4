"""How many labels a selector asks for at each step, where no cluster decides it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from attakit.errors import check_count, check_range
from attakit.queries import SampleId
from attakit.records import Rows, Selection

ROUNDING = 1e-9

First = int | Literal["unlimited"]
PerStep = float | Literal["unlimited"]


def whole(number: float) -> int:
    """The whole part of a number that decimal settings add up to.

    >>> int(0.29 * 100), whole(0.29 * 100)
    (28, 29)
    """
    return int(number + ROUNDING)


class Pace:
    """So many labels at step 0, so many per step afterwards. Fractions add up.

    Parameters
    ----------
    who
        Whose pace it is, for error messages.
    first
        Labels at step 0; "unlimited" asks for as many as are allowed.
    per_step
        Labels at each later step; "unlimited" asks for as many as are allowed.

    Examples
    --------
    >>> pace = Pace("Uniform", first=10, per_step=0.5)
    >>> [pace.due(step) for step in range(5)]
    [10, 1, 0, 1, 0]
    """

    def __init__(self, who: str, *, first: First, per_step: PerStep) -> None:
        if first != "unlimited":
            check_count(who, "first", first, at_least=0)
        if per_step != "unlimited":
            check_range(who, "per_step", per_step, at_least=0)
        self.first = first
        self.per_step = per_step

    def due(self, step: int) -> int:
        """How many labels to ask for at a step; huge without a limit."""
        if step == 0:
            return sys.maxsize if self.first == "unlimited" else self.first
        if self.per_step == "unlimited":
            return sys.maxsize
        return whole((step + 1) * self.per_step) - whole(step * self.per_step)

    def allowed(self, limit: int, step: int) -> int:
        """How many labels to ask for at a step when at most `limit` are allowed."""
        return max(0, min(limit, self.due(step)))


def askable(candidates: Rows, known: Rows) -> list[int]:
    """Positions of candidates that may be asked about: new names, each once.

    >>> import torch
    >>> names = Rows(("a", "b", "b"), torch.zeros(3, 1), torch.zeros(3, 2), torch.ones(3))
    >>> askable(names, Rows(("a",), torch.zeros(1, 1), torch.zeros(1, 2), torch.ones(1)))
    [1]
    """
    taken = set(known.samples)
    positions = []
    for position, name in enumerate(candidates.samples):
        if name not in taken:
            taken.add(name)
            positions.append(position)
    return positions


def selection_of(
    candidates: Rows, positions: Sequence[int], clusters: dict[SampleId, int] | None = None
) -> Selection:
    """The candidates at some positions as a choice in which every weight is 1.

    >>> import torch
    >>> names = Rows(("a", "b"), torch.zeros(2, 1), torch.zeros(2, 2), torch.ones(2))
    >>> selection_of(names, [1]).weights
    {'b': 1.0}
    """
    names = tuple(candidates.samples[position] for position in positions)
    return Selection(names, dict.fromkeys(names, 1.0), clusters or {})
