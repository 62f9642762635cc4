"""At random: what any cleverer selector must beat."""

from __future__ import annotations

from collections.abc import Sequence

from attakit.errors import check_count
from attakit.randomness import generator
from attakit.records import Rows, Selection
from attakit.select.pace import First, Pace, PerStep, askable, selection_of


class Uniform:
    """Ask about samples at random, each with the same chance. Every weight is 1.

    Parameters
    ----------
    first
        Labels at step 0; "unlimited" asks for as many as are allowed.
    per_step
        Labels at each later step, or "unlimited". Fractions add up: 0.5 asks at every other step.
    counts
        Labels at each step, instead of the two above: for instance as many as another selector
        asked for at that step, to compare the choice alone. Steps beyond the end ask for none.
    seed
        Of the draw.

    Examples
    --------
    >>> import torch
    >>> candidates = Rows(tuple("abc"), torch.zeros(3, 1), torch.zeros(3, 2), torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> selector = Uniform(counts=[2, 1])
    >>> len(selector.select(candidates, nothing, limit=10, step=0).samples)
    2
    """

    def __init__(
        self,
        *,
        first: First = 10,
        per_step: PerStep = 1.0,
        counts: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        self.pace = Pace("Uniform", first=first, per_step=per_step)
        self.counts = None if counts is None else _checked(counts)
        self.seed = seed

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates at random."""
        count = max(0, min(limit, self._due(step)))
        order = generator(self.seed, "uniform", step).permutation(askable(candidates, known))
        return selection_of(candidates, order[:count].tolist())

    def _due(self, step: int) -> int:
        if self.counts is None:
            return self.pace.due(step)
        return self.counts[step] if step < len(self.counts) else 0


def _checked(counts: Sequence[int]) -> tuple[int, ...]:
    for count in counts:
        check_count("Uniform", "every one of counts", count, at_least=0)
    return tuple(int(count) for count in counts)
