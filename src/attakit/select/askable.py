"""Helpers of selectors: candidates that may be asked about, and choices of equal weight."""

from __future__ import annotations

from collections.abc import Sequence

from attakit.queries import SampleId
from attakit.records import Rows, Selection


def askable(candidates: Rows, known: Rows) -> list[int]:
    """Return the positions of candidates that may be asked about: new names, each once.

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
    """Return the candidates at some positions as a choice with weights of 1.

    >>> import torch
    >>> names = Rows(("a", "b"), torch.zeros(2, 1), torch.zeros(2, 2), torch.ones(2))
    >>> selection_of(names, [1]).weights
    {'b': 1.0}
    """
    names = tuple(candidates.samples[position] for position in positions)
    return Selection(names, dict.fromkeys(names, 1.0), clusters or {})
