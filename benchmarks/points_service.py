"""A small service for points in a plane, in its own process, for tests that kill it.

`make chaos` uses it, and so do tests, with their own settings.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from attakit.service.learner.leading import LOCK_FILE

MODEL_FILE = "model_of_points.py"
MODEL = """
from torch import nn
from attakit.nn import seeded

def build():
    with seeded(0, "model of points"):
        return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
"""
SERVICE = """
folder = "live"
classes = ["left", "right", "up"]
[model]
name = "model_of_points:build"
[input]
kind = "array"
shape = [2]
"""
_CENTRES = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])  # one for each class


def draw_points(random: np.random.Generator, count: int = 10) -> list[NDArray[np.float64]]:
    """Draw points. Their classes follow from their positions."""
    return list(_CENTRES[random.integers(3, size=count)] + random.normal(size=(count, 2)))


class PointsService:
    """Starts `attakit serve` in a folder, and kills it. `tables` are settings in TOML."""

    def __init__(self, folder: Path, tables: str) -> None:
        self.folder = folder
        self.live = folder / "live"
        self.address = ""
        self.process: subprocess.Popen[str] | None = None
        (folder / MODEL_FILE).write_text(MODEL)
        (folder / "service.toml").write_text(tables)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill_server()

    @property
    def running(self) -> subprocess.Popen[str]:
        """The process of the started server."""
        assert self.process is not None
        return self.process

    def launch(
        self, environment: Mapping[str, str] = {}, prepare: Callable[[], None] | None = None
    ) -> None:
        """Start the server without waiting for it; `prepare` runs in its process before it."""
        command = [sys.executable, "-m", "attakit", "serve", "service.toml", "--port", "0"]
        with (self.folder / "log.txt").open("a") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
                preexec_fn=prepare,
            )

    def line(self) -> str:
        """Return the next line that the server prints; raise the end of its log if it ended."""
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        assert line, (self.folder / "log.txt").read_text()[-3000:]
        if line.startswith("Serving on "):
            self.address = line.removeprefix("Serving on ").strip()
        return line

    def stop(self, seconds: float = 120.0) -> int:
        """Stop it as an operator does, and return its exit code."""
        self.running.terminate()
        code = self.running.wait(seconds)
        self._close()
        return code

    def kill_server(self) -> None:
        self.running.kill()
        self.running.wait()
        self._close()

    def learner_pid(self) -> int | None:
        """Return the process id of the working learner; None if there is none.

        The file may still name one that was killed, and its number may belong to any process now.
        """
        with suppress(OSError, ValueError):
            pid = int((self.live / LOCK_FILE).read_text())
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if int(stat[1]) == self.running.pid:
                return pid
        return None

    def kill_learner(self) -> bool:
        """Kill the learner; False if none is at work."""
        pid = self.learner_pid()
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def _close(self) -> None:
        if self.running.stdout is not None:
            self.running.stdout.close()
