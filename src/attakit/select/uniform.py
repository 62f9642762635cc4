"""Random choice: the baseline that any selector must beat."""

from __future__ import annotations

from attakit.randomness import generator
from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of


class Uniform:
    """Asks about random samples, each with the same probability. Every weight is 1.

    Parameters
    ----------
    seed
        Seed of the draw.

    Examples
    --------
    >>> import torch
    >>> candidates = Rows(tuple("abc"), torch.zeros(3, 1), torch.zeros(3, 2), torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> len(Uniform().select(candidates, nothing, limit=2, step=0).samples)
    2
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates at random."""
        order = generator(self.seed, "uniform", step).permutation(askable(candidates, known))
        return selection_of(candidates, order[: max(limit, 0)].tolist())
