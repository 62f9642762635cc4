from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest
import torch

from attakit.errors import AttaError, SettingError
from attakit.processes.pool import do_side_by_side, usual_workers


@pytest.fixture
def threads_for_processes(monkeypatch):
    """A pool that starts at once; nothing here is about processes as such."""
    monkeypatch.setattr(
        "attakit.processes.pool.ProcessPoolExecutor",
        lambda workers, mp_context: ThreadPoolExecutor(workers),
    )


@pytest.mark.parametrize("workers", [0, 1, 2, None])
def test_every_job_is_done_once(threads_for_processes, workers):
    found = {}

    do_side_by_side(abs, [-1, 2, -3], done=found.__setitem__, workers=workers)

    assert found == {-1: 1, 2: 2, -3: 3}


def test_work_in_this_process_has_one_thread_and_leaves_their_number():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    found = {}
    try:
        do_side_by_side(
            lambda _job: torch.get_num_threads(), [0], done=found.__setitem__, workers=0
        )
        assert (found, torch.get_num_threads()) == ({0: 1}, 2)
    finally:
        torch.set_num_threads(before)


def test_an_error_of_a_job_comes_through(threads_for_processes):
    def refuse(job):
        raise SettingError(f"no {job}")

    with pytest.raises(SettingError, match="no 7"):
        do_side_by_side(refuse, [7], done=lambda job, result: None)


def test_a_killed_process_is_told_with_advice(threads_for_processes):
    def die(job):
        raise BrokenProcessPool

    with pytest.raises(AttaError, match=r"killed from outside.* Try this\."):
        do_side_by_side(die, [7], done=lambda job, result: None, advice="Try this.")


def test_a_negative_number_of_workers_is_refused():
    with pytest.raises(SettingError, match="workers must be at least 0, got -1"):
        do_side_by_side(abs, [1], done=lambda job, result: None, workers=-1)


def test_there_is_always_a_worker_but_none_idle(monkeypatch):
    monkeypatch.setattr("attakit.processes.pool.usable_cores", lambda: 4)

    assert [usual_workers(jobs) for jobs in (0, 1, 3, 9)] == [1, 1, 3, 4]
