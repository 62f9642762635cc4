"""Locks: one server and one learner for each folder."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from attakit.errors import StateError

_PAUSE = 0.1


@contextmanager
def exclusive_lock(path: Path, patience: float = 0.0) -> Iterator[None]:
    """Inside, no other process holds the lock. It ends with the process, however that ends.

    Parameters
    ----------
    path
        File in the folder that is worked on, named after who works there; it gets their number.
    patience
        Seconds in which one that was killed may end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    with path.open("a") as file:
        while not _locked(file):
            if time.monotonic() >= deadline:
                raise StateError(
                    f"The {path.stem}: another one works on {path.parent}. Stop it, or use "
                    f"another folder."
                )
            time.sleep(_PAUSE)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
