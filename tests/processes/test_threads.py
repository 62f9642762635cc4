import os

from attakit.processes.threads import usable_cores


def test_cores_that_this_process_may_not_use_do_not_count(monkeypatch):
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {0, 3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)

    assert usable_cores() == 2


def test_python_itself_is_asked_where_it_knows(monkeypatch):
    monkeypatch.setattr(os, "process_cpu_count", lambda: 3, raising=False)

    assert usable_cores() == 3


def test_where_the_system_cannot_tell_all_cores_count(monkeypatch):
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)

    assert usable_cores() == 1
