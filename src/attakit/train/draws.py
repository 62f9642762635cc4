"""Endless mini-batches of positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def draw_batches(count: int, batch_size: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield positions below `count`, forever: all of them before any is repeated.

    Examples
    --------
    >>> batches = draw_batches(3, 2, np.random.default_rng(0))
    >>> sorted(np.concatenate([next(batches) for _ in range(3)]).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    size = min(batch_size, count)
    left = random.permutation(count)
    while True:
        while len(left) < size:
            left = np.concatenate([left, random.permutation(count)])
        yield left[:size]
        left = left[size:]
