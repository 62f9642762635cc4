"""A pool of local processes. Every task gets a fresh process."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from attakit.errors import AttaError, check_count
from attakit.processes.threads import usable_cores, using_threads

Send = Callable[[Any], None]
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Message:
    """A message that a running task has sent."""

    task: str
    content: Any


@dataclass(frozen=True)
class Finished:
    """A task has returned."""

    task: str
    result: Any


@dataclass(frozen=True)
class Failed:
    """A task has raised an exception."""

    task: str
    error: Exception


@dataclass(frozen=True)
class Died:
    """The process of a task has ended before the task did."""

    task: str
    exit_code: int | None


PoolEvent = Message | Finished | Failed | Died


class ProcessPool:
    """Runs tasks in processes. Use it in a `with` block: no process outlives it.

    A separate process per task means that its peak memory is its own, and a killed process costs
    one task only.

    Parameters
    ----------
    workers
        How many tasks run at once.
    preload
        Modules that processes import once and share, if the system supports that.

    Examples
    --------
    >>> with ProcessPool(workers=2) as pool:
    ...     pool.has_room, pool.wait(0.0)
    (True, [])
    """

    def __init__(self, *, workers: int, preload: Sequence[str] = ()) -> None:
        check_count("ProcessPool", "workers", workers)
        self._workers = workers
        self._context = _context([__name__, *preload])
        self._running: dict[Connection, tuple[str, BaseProcess]] = {}

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe, (_task, process) in self._running.items():
            process.kill()
            process.join()
            pipe.close()
        self._running.clear()

    @property
    def has_room(self) -> bool:
        """True if another task can start."""
        return len(self._running) < self._workers

    @property
    def is_idle(self) -> bool:
        """True if no task is running."""
        return not self._running

    def start(self, task: str, work: Callable[[Any, Send], Any], argument: Any) -> None:
        """Call a module's function in a new process, with an argument and a way to send messages.

        Argument, messages and result are pickled.
        """
        here, there = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=_work, args=(task, work, argument, there, dict(os.environ)), name=task
        )
        process.start()
        there.close()  # so that the pipe ends when the process ends
        self._running[here] = (task, process)

    def wait(self, seconds: float | None = None) -> list[PoolEvent]:
        """Return events as soon as there are any, or nothing after the timeout."""
        ready = wait(list(self._running), seconds)
        return [self._receive(pipe) for pipe in list(self._running) if pipe in ready]

    def stop(self) -> None:
        """Send SIGTERM to every task. Their end is reported later by `wait`."""
        for _, process in self._running.values():
            process.terminate()

    def _receive(self, pipe: Connection) -> PoolEvent:
        task, process = self._running[pipe]
        try:
            event: PoolEvent = pipe.recv()
        except (EOFError, OSError):
            process.join()
            event = Died(task, process.exitcode)
        if not isinstance(event, Message):
            process.join()
            pipe.close()
            del self._running[pipe]
        return event


def run_in_processes(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    *,
    on_result: Callable[[_Job, _Result], None],
    workers: int | None = None,
    advice: str = "Start it again.",
) -> None:
    """Run jobs in parallel, in processes of one thread each.

    For small models, two processes are faster than two threads. Results are the same for any
    number of workers.

    Parameters
    ----------
    work
        The function to call for each job. It must be at the top level of a module.
    jobs
        Anything that can be pickled.
    on_result
        Called in this process with each job and its result, in the order of completion.
    workers
        How many jobs run at once; by default one per core. 0 runs all jobs in this process.
    advice
        Advice for the user if a process was killed. The error message ends with it.

    Examples
    --------
    >>> results = []
    >>> run_in_processes(abs, [-1, 2], on_result=lambda _, r: results.append(r), workers=0)
    >>> results
    [1, 2]
    """
    workers = default_workers(len(jobs)) if workers is None else workers
    check_count("run_in_processes", "workers", workers, at_least=0)
    if workers == 0:
        with using_threads(1):
            for job in jobs:
                on_result(job, work(job))
        return
    waiting = list(enumerate(jobs))
    with ProcessPool(workers=workers, preload=[work.__module__]) as pool:
        while waiting or not pool.is_idle:
            while waiting and pool.has_room:
                number, job = waiting.pop(0)
                pool.start(str(number), _work_on_one_thread, (work, job))
            for event in pool.wait():
                on_result(jobs[int(event.task)], _result(event, advice))


def default_workers(jobs: int) -> int:
    """Return the number of processes for some jobs: one per core, none idle.

    >>> default_workers(1)
    1
    """
    return max(1, min(jobs, usable_cores()))


def _result(event: PoolEvent, advice: str) -> Any:
    if isinstance(event, Finished):
        return event.result
    if isinstance(event, Failed):
        raise event.error
    raise AttaError(
        "A process was killed from outside, perhaps because memory ran out. Close other "
        f"programs. {advice}"
    )


def _work_on_one_thread(job: tuple[Callable[[_Job], _Result], _Job], _send: Send) -> _Result:
    work, argument = job
    with using_threads(1):
        return work(argument)


def _context(preload: list[str]) -> Any:
    """Choose how processes start: as copies of one that has imported the modules, if possible."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(preload)
    return context


def _work(
    task: str,
    work: Callable[[Any, Send], Any],
    argument: Any,
    pipe: Connection,
    environment: Mapping[str, str],
) -> None:
    """Run one task in its process, from start to end."""
    # The server that processes are copied from may have an older environment.
    os.environ.clear()
    os.environ.update(environment)
    if hasattr(os, "setpgid"):
        # Detached from the terminal: only the first process gets Ctrl-C, and it stops the others.
        os.setpgid(0, 0)
    event: Finished | Failed
    try:
        event = Finished(task, work(argument, lambda content: pipe.send(Message(task, content))))
    except Exception as error:  # raised again in the first process
        error.add_note("".join(traceback.format_exception(error)))
        event = Failed(task, error)
    with suppress(OSError):  # the first process was killed
        pipe.send(event)
