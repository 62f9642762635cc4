import os

import numpy as np
import sklearn.cluster  # noqa: F401  loads the threads of scikit-learn
from threadpoolctl import threadpool_info

from attakit.processes.threads import usable_cores, using_threads


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


def test_numpy_and_scikit_learn_have_no_more_threads_than_torch():
    before = [pool["num_threads"] for pool in threadpool_info()]
    with using_threads(1):
        np.ones((4, 4)) @ np.ones((4, 4))
        assert {pool["num_threads"] for pool in threadpool_info()} == {1}
    assert [pool["num_threads"] for pool in threadpool_info()] == before
