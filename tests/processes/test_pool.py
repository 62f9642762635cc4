import os
import signal

import pytest
import torch

from attakit.errors import AttaError, SettingError
from attakit.processes.pool import (
    Died,
    Finished,
    Message,
    ProcessPool,
    default_workers,
    run_in_processes,
)


def refuse(job):
    raise SettingError(f"no {job}")


def die(job):
    os.kill(os.getpid(), signal.SIGKILL)


def threads_of(job):
    return torch.get_num_threads()


def count(argument, send):
    for number in range(argument):
        send(number)
    return os.getpid()


@pytest.mark.parametrize("workers", [0, 1, 2, None])
def test_every_job_is_done_once(workers):
    found = {}

    run_in_processes(abs, [-1, 2, -3], on_result=found.__setitem__, workers=workers)

    assert found == {-1: 1, 2: 2, -3: 3}


@pytest.mark.parametrize("workers", [0, 1])
def test_work_has_one_thread_and_leaves_their_number(workers):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    found = {}
    try:
        run_in_processes(threads_of, [0], on_result=found.__setitem__, workers=workers)
        assert (found, torch.get_num_threads()) == ({0: 1}, 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_of_a_job_comes_through(workers):
    with pytest.raises(SettingError, match="no 7"):
        run_in_processes(refuse, [7], on_result=lambda job, result: None, workers=workers)


def test_a_killed_process_is_an_error_with_advice():
    with pytest.raises(AttaError, match=r"killed from outside.* Try this\."):
        run_in_processes(die, [7], on_result=lambda job, result: None, advice="Try this.")


def test_a_negative_number_of_workers_is_refused():
    with pytest.raises(SettingError, match="workers must be at least 0, got -1"):
        run_in_processes(abs, [1], on_result=lambda job, result: None, workers=-1)


def test_there_is_always_a_worker_but_none_idle(monkeypatch):
    monkeypatch.setattr("attakit.processes.pool.usable_cores", lambda: 4)

    assert [default_workers(jobs) for jobs in (0, 1, 3, 9)] == [1, 1, 3, 4]


def test_messages_come_in_order_and_each_task_has_its_own_process():
    events = []
    with ProcessPool(workers=2) as pool:
        for name in ("a", "b"):
            pool.start(name, count, 3)
        assert not pool.has_room
        while not pool.is_idle:
            events += pool.wait()

    for name in ("a", "b"):
        *sent, end = [event for event in events if event.task == name]
        assert sent == [Message(name, number) for number in range(3)]
        assert isinstance(end, Finished)
    processes = {event.result for event in events if isinstance(event, Finished)}
    assert len(processes - {os.getpid()}) == 2


def test_a_process_that_dies_is_reported_with_its_exit_code():
    with ProcessPool(workers=1) as pool:
        pool.start("a", os.kill, None)  # fails at once
        (failed,) = pool.wait()
        pool.start("b", leave, 3)
        (died,) = pool.wait()

    assert isinstance(failed.error, TypeError)
    assert died == Died("b", 3)


def leave(code, send):
    os._exit(code)
