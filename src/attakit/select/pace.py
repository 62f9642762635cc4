"""How many labels a selector asks for at each step, where no cluster decides it."""

from __future__ import annotations

from attakit.errors import check_count, check_range
from attakit.records import Rows

ROUNDING = 1e-9


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
        Labels at step 0.
    per_step
        Labels at each later step.

    Examples
    --------
    >>> pace = Pace("Uniform", first=10, per_step=0.5)
    >>> [pace.due(step) for step in range(5)]
    [10, 1, 0, 1, 0]
    """

    def __init__(self, who: str, *, first: int, per_step: float) -> None:
        check_count(who, "first", first, at_least=0)
        check_range(who, "per_step", per_step, at_least=0)
        self.first = first
        self.per_step = per_step

    def due(self, step: int) -> int:
        """How many labels to ask for at a step."""
        if step == 0:
            return self.first
        return whole((step + 1) * self.per_step) - whole(step * self.per_step)


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
