"""Endless mini-batches of positions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

Draw = Literal["shuffled", "replacement"]


def draw_batches(
    count: int, batch_size: int, random: np.random.Generator, *, draw: Draw = "shuffled"
) -> Iterator[np.ndarray]:
    """Yield positions below `count`, for ever.

    "shuffled" goes through all positions before any comes again, in batches of one size.
    "replacement" draws each pass with replacement and cuts it into batches, the last one smaller,
    as the public code does.

    >>> batches = draw_batches(3, 2, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(batches) for _ in range(3)]).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    if draw == "replacement":
        while True:
            positions = random.integers(count, size=count)
            for start in range(0, count, batch_size):
                yield positions[start : start + batch_size]
    size = min(batch_size, count)
    left = random.permutation(count)
    while True:
        while len(left) < size:
            left = np.concatenate([left, random.permutation(count)])
        yield left[:size]
        left = left[size:]
