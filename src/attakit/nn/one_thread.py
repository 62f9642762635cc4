"""Small linear algebra on one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Let NumPy and scikit-learn use one thread inside the block.

    The arrays here are small. More threads take longer for them, and on a busy machine several
    times as long, because threads that wait for each other keep a core busy.

    >>> import numpy as np
    >>> with one_thread():
    ...     float(np.linalg.inv(np.eye(2))[0, 0])
    1.0
    """
    with _libraries().limit(limits=1):
        yield


@cache
def _libraries() -> ThreadpoolController:
    # Finding the libraries takes longer than the work.
    return ThreadpoolController()
