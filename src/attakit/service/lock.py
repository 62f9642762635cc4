"""Locks: one server and one learner for each folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from attakit.errors import StateError

_POLL_SECONDS = 0.1


@contextmanager
def exclusive_lock(path: Path, timeout: float = 0.0) -> Iterator[None]:
    """Hold a lock that no other process has. The system frees it when the process ends or dies.

    Parameters
    ----------
    path
        The lock file, named after the process that holds it. It contains that process's id.
    timeout
        Seconds to wait for a process that holds the lock but is about to end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # A soft lock would outlive a process that is killed, so there is no fallback to one.
    lock = FileLock(
        path, timeout, poll_interval=_POLL_SECONDS, fallback_to_soft=False, on_acquired=_write_pid
    )
    try:
        held = lock.acquire()
    except Timeout as error:
        raise StateError(
            f"The {path.stem}: another {path.stem} is using {path.parent}. Stop it, or use another "
            "folder."
        ) from error
    with held:
        yield


def _write_pid(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
