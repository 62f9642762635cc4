"""Servers and learners of one deployment, each a process of its own, for tests that kill them."""

import os
import subprocess
import sys
import time

from points_service import MODEL, MODEL_FILE

from attakit.client import Client
from live_service import PATIENCE, tables_of


class Process:
    """One `attakit` command in a folder of its own, as on a machine of its own."""

    def __init__(self, folder, *arguments):
        folder.mkdir()
        self.log = folder / "log.txt"
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "attakit", *arguments],
                cwd=folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": _python_path(folder)},
            )
        self.pid = self._process.pid

    def first_line(self):
        """What it prints once it works."""
        line = self._process.stdout.readline().strip()
        assert line, self.log.read_text()[-3000:]
        return line

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def stop(self):
        """End it in the proper way; returns its exit code."""
        self._process.terminate()
        code = self._process.wait(PATIENCE)
        self._process.stdout.close()
        return code

    def ensure_ended(self):
        if self._process.poll() is None:
            self.kill()


class Deployment:
    """Any number of servers and learners that share nothing but a database."""

    def __init__(self, folder, database, *, budget, method="simatta"):
        self._folder = folder
        self._started = []
        (folder / MODEL_FILE).write_text(MODEL)
        tables = tables_of(database, method, budget=f"{budget}\nper_1000 = 300")
        self.file = folder / "service.toml"
        self.file.write_text('files = "database"\n' + tables)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        for process in self._started:
            process.ensure_ended()

    def server(self):
        return self._start("serve", str(self.file), "--no-learner", "--open", "--port", "0")

    def learner(self):
        return self._start("learn", str(self.file))

    def _start(self, *arguments):
        place = self._folder / f"machine-{len(self._started)}"
        self._started.append(Process(place, *arguments))
        return self._started[-1]


def address_of(server):
    return server.first_line().removeprefix("Serving on ")


def client_of(address, name="Ada"):
    return Client(address, annotator=name, pauses=(0.2, 0.5, 1.0))


def wait_for(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def leader(storage):
    """Process number of the learner that leads, or led last."""
    (newest,) = storage.events.recent(1, kind="learner") or (None,)
    return newest and newest.details["pid"]


def _python_path(folder):
    paths = [str(folder.parent), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(path for path in paths if path)
