"""Jobs side by side on this machine, each in a fresh process of its own."""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from threadpoolctl import threadpool_limits

from attakit.bench.suites.work import Ended, Event, Job, Outcome, do_job
from attakit.build.sets.places import COUNTS
from attakit.errors import check_count

_KILL = 9  # SIGKILL, which Windows has no name for
_KILLED_IN_SHELL = 128 + _KILL  # as a shell in between tells it


class Processes:
    """A workplace on this machine. Use it in a `with` block: no process outlives it.

    Every job has a process of its own, so that the peak memory which a run reports is its own.

    Parameters
    ----------
    workers
        How many jobs are done at once.

    Examples
    --------
    >>> with Processes(workers=2) as workplace:
    ...     workplace.has_room, workplace.wait(0.0)
    (True, [])
    """

    def __init__(self, *, workers: int) -> None:
        check_count("Processes", "workers", workers)
        self._workers = workers
        self._context = _context()
        self._running: dict[Connection, tuple[Job, BaseProcess]] = {}
        self._stopping = False

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, (_job, process) in self._running.items():
            process.kill()
            process.join()
            pipe.close()
        self._running.clear()

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._workers

    def start(self, job: Job) -> None:
        here, there = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(job, there, dict(os.environ)), name=job.cell
        )
        process.start()
        there.close()  # so that the end of the process is the end of the pipe
        self._running[here] = (job, process)

    def wait(self, seconds: float) -> Sequence[Event]:
        ready = wait(list(self._running), seconds)
        return [self._receive(pipe) for pipe in list(self._running) if pipe in ready]

    def stop(self) -> None:
        self._stopping = True
        for _, process in self._running.values():
            process.terminate()

    def _receive(self, pipe: Connection) -> Event:
        job, process = self._running[pipe]
        try:
            event: Event = pipe.recv()
        except (EOFError, OSError):
            process.join()
            event = Ended(job.cell, self._lost(process.exitcode))
        if isinstance(event, Ended):
            process.join()
            pipe.close()
            del self._running[pipe]
        return event

    def _lost(self, code: int | None) -> Outcome:
        if self._stopping:
            return Outcome("stopped")
        return Outcome("lost", _why_lost(code))


def _why_lost(code: int | None) -> str:
    """Why a process ended before its job, judged by its exit code.

    >>> _why_lost(1)
    'The process of this cell ended with exit code 1 before its run did. What it printed says more;
    run the cell alone with --only to see it.'
    """
    if code is None or (code >= 0 and code != _KILLED_IN_SHELL):
        return (
            f"The process of this cell ended with exit code {code} before its run did. What it "
            f"printed says more; run the cell alone with --only to see it."
        )
    signal_number = _KILL if code == _KILLED_IN_SHELL else -code
    how = f"The process of this cell was ended from outside (by signal {signal_number})"
    if signal_number != _KILL:
        return f"{how}. Give the same command again to go on."
    return (
        f"{how}, perhaps because memory ran out. Use fewer workers with --workers, or a smaller "
        f"stream.batch_size."
    )


def _context() -> Any:
    """How processes are started: copies of one that has imported all this, where that is known."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def _work(job: Job, pipe: Connection, environment: Mapping[str, str]) -> None:
    """The life of a process."""
    # The server that processes are copied from may be older than what the environment says now.
    os.environ.clear()
    os.environ.update(environment)
    if hasattr(os, "setpgid"):
        # Out of reach of the terminal: Ctrl-C is for the first process, which tells the others.
        os.setpgid(0, 0)
    COUNTS.setLevel(logging.ERROR)  # the first process has told it, once for all cells
    with threadpool_limits(job.experiment.threads or None):
        outcome = do_job(job, pipe.send)
    with suppress(OSError):  # nobody listens any more: the first process was killed
        pipe.send(Ended(job.cell, outcome))
