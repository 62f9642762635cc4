import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

from attakit.service import supervisor as supervise
from attakit.service.supervisor import GAVE_UP, Supervisor

PATIENCE = 60.0


def note_and_sleep(folder):
    """What the process of these tests does."""
    number = len(list(folder.iterdir()))
    (folder / f"start-{number}").write_text(str(os.getpid()))
    time.sleep(PATIENCE)


def note_and_give_up(folder):
    (folder / f"start-{len(list(folder.iterdir()))}").write_text(str(os.getpid()))
    sys.exit(GAVE_UP)


def wait_for(path: Path):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if path.exists() and (told := path.read_text()):
            return int(told)
        time.sleep(0.02)
    raise AssertionError(f"{path.name} never came")


def test_a_process_that_dies_is_started_again_until_it_is_told_to_stop(tmp_path):
    codes = []
    supervisor = Supervisor(
        partial(note_and_sleep, tmp_path), died=lambda code, _: codes.append(code)
    )
    supervisor.start()
    first = wait_for(tmp_path / "start-0")

    os.kill(first, signal.SIGKILL)
    second = wait_for(tmp_path / "start-1")
    alive = supervisor.is_alive
    supervisor.stop()

    assert alive
    assert second != first
    assert codes == [-signal.SIGKILL]
    assert not supervisor.is_alive


def test_a_process_is_started_again_also_if_its_end_cannot_be_told(tmp_path):
    def complain(code, in_a_row):
        raise OSError("The database is away.")

    supervisor = Supervisor(partial(note_and_sleep, tmp_path), died=complain)
    supervisor.start()

    os.kill(wait_for(tmp_path / "start-0"), signal.SIGKILL)
    wait_for(tmp_path / "start-1")
    supervisor.stop()

    assert not supervisor.is_alive


def test_how_often_a_process_ended_in_a_row_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "FIRST_PAUSE", 0.0)
    told, thrice = [], threading.Event()

    def note(code, in_a_row):
        told.append(in_a_row)
        if in_a_row == 3:
            thrice.set()

    supervisor = Supervisor(partial(sys.exit, 1), died=note)
    supervisor.start()
    assert thrice.wait(PATIENCE)
    supervisor.stop()

    assert told[:3] == [1, 2, 3]


def test_only_the_supervisor_asks_the_system_how_the_process_ended(tmp_path, monkeypatch):
    # Of two threads that ask at once, one is told that there is no such process.
    asked = set()
    wait = os.waitpid

    def note(pid, options):
        asked.add(threading.current_thread().name)
        return wait(pid, options)

    monkeypatch.setattr(os, "waitpid", note)
    told = threading.Event()
    supervisor = Supervisor(partial(note_and_give_up, tmp_path), died=lambda *_: told.set())
    supervisor.start()
    while not told.wait(0.02):
        _ = supervisor.is_alive

    supervisor.stop()

    assert asked == {"supervisor"}


def test_a_process_that_gives_up_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(supervise, "FIRST_PAUSE", 0.0)
    told = threading.Event()
    supervisor = Supervisor(partial(note_and_give_up, tmp_path), died=lambda *_: told.set())
    supervisor.start()
    assert told.wait(PATIENCE)

    supervisor.stop()

    assert [path.name for path in tmp_path.iterdir()] == ["start-0"]
    assert not supervisor.is_alive
