"""Cells of a suite on this machine, each in a fresh process."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from threadpoolctl import threadpool_limits

from attakit.bench.suites.work import CellEnd, CellEvent, CellResult, Job, do_job, failure
from attakit.build.sets.places import COUNTS
from attakit.processes.pool import Failed, Finished, Message, PoolEvent, ProcessPool, Send

# torch imports the second at the first optimiser step, which takes longer than many cells.
_PRELOADED = (__name__, "torch._dynamo")
_KILL = 9  # SIGKILL, which has no name on Windows
_KILLED_IN_SHELL = 128 + _KILL  # the exit code that a shell in between reports


class LocalExecutor:
    """Runs cells in processes on this machine. Use it in a `with` block: no process outlives it.

    Parameters
    ----------
    workers
        Number of cells that run at once.

    Examples
    --------
    >>> with LocalExecutor(workers=2) as executor:
    ...     executor.has_room, executor.wait(0.0)
    (True, [])
    """

    def __init__(self, *, workers: int) -> None:
        self.pool = ProcessPool(workers=workers, preload=_PRELOADED)
        self._stopping = False

    def __enter__(self) -> LocalExecutor:
        self.pool.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.pool.__exit__(*error)

    @property
    def has_room(self) -> bool:
        return self.pool.has_room

    def start(self, job: Job) -> None:
        self.pool.start(job.cell, _run_job, job)

    def wait(self, seconds: float) -> Sequence[CellEvent]:
        return [self._event(event) for event in self.pool.wait(seconds)]

    def stop(self) -> None:
        self._stopping = True
        self.pool.stop()

    def _event(self, event: PoolEvent) -> CellEvent:
        if isinstance(event, Message):
            progress: CellEvent = event.content
            return progress
        if isinstance(event, Finished):
            return CellEnd(event.task, event.result)
        if isinstance(event, Failed):
            return CellEnd(event.task, failure(event.error))
        return CellEnd(event.task, self._lost(event.exit_code))

    def _lost(self, code: int | None) -> CellResult:
        if self._stopping:
            return CellResult("stopped")
        return CellResult("lost", _why_lost(code))


def _why_lost(code: int | None) -> str:
    """Explain from its exit code why a process ended before its cell.

    >>> _why_lost(1)
    'The process of this cell ended with exit code 1 before its run was done. Its output may say
    why. Run the cell alone with --only to see it.'
    """
    if code is None or (code >= 0 and code != _KILLED_IN_SHELL):
        return (
            f"The process of this cell ended with exit code {code} before its run was done. "
            "Its output may say why. Run the cell alone with --only to see it."
        )
    signal_number = _KILL if code == _KILLED_IN_SHELL else -code
    how = f"The process of this cell was killed (signal {signal_number})"
    if signal_number != _KILL:
        return f"{how}. Run the same command again to continue."
    return (
        f"{how}, perhaps because memory ran out. Use fewer workers with --workers, or a smaller "
        f"stream.batch_size."
    )


def _run_job(job: Job, send: Send) -> CellResult:
    COUNTS.setLevel(logging.ERROR)  # the first process has reported it for all cells
    with threadpool_limits(job.experiment.threads or None):
        return do_job(job, send)
