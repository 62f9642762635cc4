"""The number of usable cores, and the number of threads of torch and numpy."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


def usable_cores() -> int:
    """Return how many cores this process may use. It can be fewer than the machine has.

    >>> 1 <= usable_cores() <= (os.cpu_count() or 1)
    True
    """
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Use this many threads inside the block, then restore the old number; 0 changes nothing.

    >>> before = torch.get_num_threads()
    >>> with using_threads(1):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads()
    # numpy and scikit-learn have their own threads, separate from torch's. Without a limit, two
    # processes compete for the cores and everything takes three times as long.
    with threadpool_limits(count or None):
        if count:
            torch.set_num_threads(count)
        try:
            yield
        finally:
            torch.set_num_threads(before)
