"""Imports without garbage collection, so that commands start fast. Imports nothing heavy itself."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Keep the garbage collector away from what is imported, now and later.

    What an import creates stays until the process ends, so searching it is wasted time: a third
    of the start-up of light commands (`benchmarks/start_up.py`).
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
