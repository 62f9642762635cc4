"""Work side by side: one job per process, one thread each."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

import torch

from attakit.errors import AttaError, check_count
from attakit.processes.interrupt import ignoring_ctrl_c
from attakit.processes.threads import usable_cores

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def usual_workers(jobs: int) -> int:
    """How many processes to use for so many jobs: one per core, none idle.

    >>> usual_workers(1)
    1
    """
    return max(1, min(jobs, usable_cores()))


def do_side_by_side(
    work: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    *,
    done: Callable[[_Job, _Result], None],
    workers: int | None = None,
    advice: str = "Start it again.",
) -> None:
    """Do jobs in processes of one thread each.

    On models small enough for it, two processes beat two threads. Results are the same for any
    number of workers.

    Parameters
    ----------
    work
        What to do with a job: a function at the top level of a module.
    jobs
        Anything that can be sent to another process.
    done
        Called, in this process, with each job and its result, in the order they end.
    workers
        Processes; by default one per core. 0 works in this one, job after job.
    advice
        What to tell a user whose processes were killed.

    Examples
    --------
    >>> results = []
    >>> do_side_by_side(abs, [-1, 2], done=lambda _job, result: results.append(result), workers=0)
    >>> results
    [1, 2]
    """
    workers = usual_workers(len(jobs)) if workers is None else workers
    check_count("do_side_by_side", "workers", workers, at_least=0)
    if workers == 0:
        with _one_thread():
            for job in jobs:
                done(job, work(job))
        return
    with _processes(min(workers, max(1, len(jobs)))) as pool:
        with ignoring_ctrl_c():  # processes inherit this: only the first one answers the user
            left = {pool.submit(_work_on_one_thread, work, job): job for job in jobs}
        while left:
            for future in wait(left, return_when=FIRST_COMPLETED).done:
                done(left.pop(future), _result(future, advice))


def _work_on_one_thread(work: Callable[[_Job], _Result], job: _Job) -> _Result:
    with _one_thread():
        return work(job)


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _result(future: Future[_Result], advice: str) -> _Result:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise AttaError(
            "A process was killed from outside, perhaps because memory ran out. Close other "
            f"programs. {advice}"
        ) from error


@contextmanager
def _processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool that ends at once after Ctrl-C or an error, instead of doing all that was asked."""
    before = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.kill()
            raise
