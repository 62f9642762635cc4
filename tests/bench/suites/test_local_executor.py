"""Jobs in processes of their own: side by side, killed, stopped."""

import os
import signal
import sys
import time

import pytest

from attakit.bench.suites.cells import cell_state
from attakit.bench.suites.grid import Grid
from attakit.bench.suites.local_executor import LocalExecutor
from attakit.bench.suites.sources import prepare_sources
from attakit.bench.suites.work import CellEnd, CellProgress, Job
from attakit.errors import SettingError
from attakit.report.runs import read_run

DEADLINE = 120.0


def events_until(executor, wanted):
    """Collect events until one is wanted."""
    seen, deadline = [], time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        for event in executor.wait(0.1):
            seen.append(event)
            if wanted(event):
                return seen
    raise AssertionError(f"not seen in {DEADLINE:.0f} seconds; only {seen}")


def has_ended(event):
    return isinstance(event, CellEnd)


def has_stepped(event):
    return isinstance(event, CellProgress) and event.done > 0


def process_of(executor):
    ((_, process),) = executor.pool._running.values()
    return process


@pytest.fixture
def long_job(small_grid, quick_digits):
    """A job of some sixty steps."""
    base = {"stream": {"targets": ["outline"], "batch_size": 10}, "threads": 1}
    (cell,) = small_grid("SimATTA", base=base)
    return cell, Job(cell.name, cell.experiment)


def test_cells_run_side_by_side_each_in_its_own_process(small_grid, quick_digits):
    cells = small_grid("Source only", "Tent", seeds=[0, 1])
    grid = Grid(cells, prepare_sources(cells))
    running, at_once = set(), []

    class Counted(LocalExecutor):
        def start(self, job):
            super().start(job)
            running.add(job.cell)
            at_once.append(len(running))

    with Counted(workers=2) as executor:
        grid.run(executor, callbacks=lambda event: has_ended(event) and running.discard(event.cell))

    assert {end for end, _ in grid.outcomes.values()} == {"finished"}
    assert max(at_once) == 2
    for cell in cells:
        run = read_run(cell.folder)
        assert run.environment["threads"] == 1
        assert run.end["peak_memory_mb"] > 50


def test_a_killed_process_is_a_lost_cell(long_job):
    with LocalExecutor(workers=1) as executor:
        executor.start(long_job[1])
        assert not executor.has_room
        events_until(executor, has_stepped)
        os.kill(process_of(executor).pid, signal.SIGKILL)
        end = events_until(executor, has_ended)[-1]

    assert end.outcome.result == "lost"
    assert "signal 9" in end.outcome.message
    assert "--workers" in end.outcome.message
    assert executor.has_room


def leave(*_):
    """Stands for a process that ends by itself, as one does whose program cannot be imported."""
    sys.exit(1)


def test_a_process_that_ends_by_itself_is_told_with_its_exit_code(long_job, monkeypatch):
    monkeypatch.setattr("attakit.bench.suites.local_executor._run_job", leave)
    with LocalExecutor(workers=1) as executor:
        executor.start(long_job[1])
        end = events_until(executor, has_ended)[-1]

    assert end.outcome.result == "lost"
    assert "ended with exit code 1 before" in end.outcome.message
    assert "memory" not in end.outcome.message


def test_memory_is_suspected_only_where_a_process_was_killed(long_job):
    with LocalExecutor(workers=1) as executor:
        told = {code: executor._lost(code).message for code in (-9, 137, -15, 255)}

    assert [code for code, message in told.items() if "memory" in message] == [-9, 137]
    assert "(signal 15)" in told[-15]
    assert "exit code 255" in told[255]


def test_a_cell_asked_to_stop_saves_and_ends(long_job):
    cell, job = long_job
    with LocalExecutor(workers=1) as executor:
        executor.start(job)
        events_until(executor, has_stepped)
        executor.stop()
        end = events_until(executor, has_ended)[-1]

    assert end.outcome.result == "stopped"
    assert cell_state(cell) == "interrupted"
    assert (cell.folder / "snapshot.safetensors").exists()


def test_no_process_outlives_its_executor(long_job):
    with LocalExecutor(workers=1) as executor:
        executor.start(long_job[1])
        events_until(executor, has_stepped)
        process = process_of(executor)

    assert not process.is_alive()


def test_there_must_be_a_worker():
    with pytest.raises(SettingError, match="workers must be at least 1"):
        LocalExecutor(workers=0)
