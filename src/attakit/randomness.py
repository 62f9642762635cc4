"""Random choices that depend only on (seed, purpose, step).

Nothing in the library uses global random state. Each choice has its own generator, so a new choice
shifts no other, and a resumed run needs no saved generator.
"""

from __future__ import annotations

import hashlib

import numpy as np


def derived_seed(seed: int, purpose: str, step: int | str = 0) -> int:
    """Mix a seed, a purpose and a step (or any name) into a number below 2**32.

    >>> derived_seed(1, "select", 3) == derived_seed(1, "select", 3)
    True
    >>> derived_seed(1, "select", 3) == derived_seed(1, "select", 4)
    False
    """
    digest = hashlib.sha256(f"{seed}/{purpose}/{step}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def generator(seed: int, purpose: str, step: int | str = 0) -> np.random.Generator:
    """Make a generator for one purpose at one step.

    >>> int(generator(1, "order").integers(1000)) == int(generator(1, "order").integers(1000))
    True
    """
    return np.random.default_rng(derived_seed(seed, purpose, step))
