"""A small service in a process of its own, for tests that kill it."""

import os
import signal
import subprocess
import sys
import time

import numpy as np

from attakit.client import Client
from attakit.errors import ServiceError
from attakit.randomness import generator
from attakit.service.learner.leading import LOCK_FILE

MODEL = """
from torch import nn
from attakit.nn import seeded

def build():
    with seeded(0, "model of a test"):
        return nn.Sequential(nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
"""
SERVICE = """
folder = "live"
database = "{database}"
classes = ["left", "right", "up"]
[model]
name = "model_of_this_test:build"
[input]
kind = "array"
shape = [2]
[method]
{method}
[labels]
budget = 100_000
audit_share = 0.3
settle_seconds = 0.0
[learning]
batch_size = 20
batch_seconds = 0.5
checkpoint_every = 3
niceness = 0
[gate]
audit_needed = 5
audit_margin = 1.0
source_margin = 1.0
trust = 0.0
[server]
open = true
"""
METHODS = {
    "simatta": """name = "simatta"
high_entropy_bound = 0.0
selector = { name = "incremental", cluster_growth = 2, inits = 1 }
trainer = { max_updates = 5 }""",
    "anchor_head": "",  # the default
}
CENTRES = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
PATIENCE = 300.0


class LiveService:
    """Starts `attakit serve` in a folder, talks to it, and kills it."""

    def __init__(self, folder, database, method="simatta"):
        self.folder = folder
        (folder / "model_of_this_test.py").write_text(MODEL)
        (folder / "service.toml").write_text(
            SERVICE.format(database=database, method=METHODS[method])
        )
        self.process = None
        self.address = None
        self.sent = 0
        self.learner = ""  # process number of the last one seen

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        if self.process is not None and self.process.poll() is None:
            self.kill_server()

    def start(self):
        with (self.folder / "log.txt").open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "attakit", "serve", "service.toml", "--port", "0"],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        line = self.process.stdout.readline()
        assert line.startswith("Serving on "), (self.folder / "log.txt").read_text()[-3000:]
        self.address = line.removeprefix("Serving on ").strip()

    def client(self, name="Ada"):
        return Client(self.address, annotator=name, pauses=())

    def send(self, client, count=10):
        """Send points whose classes are known by where they lie."""
        draw = generator(0, "points of a test", self.sent)
        self.sent += 1
        points = CENTRES[draw.integers(3, size=count)] + draw.normal(size=(count, 2))
        return client.predict(list(points))

    def kill_server(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def kill_learner(self):
        """Kill the learner, if one is at work."""
        pid = (self.folder / "live" / LOCK_FILE).read_text()
        if pid:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                return

    def wait_for_learner(self):
        """Until a learner of this server has begun: it replays its log, or looks for work."""
        lock = self.folder / "live" / LOCK_FILE
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if lock.exists() and (pid := lock.read_text()) and pid != self.learner:
                self.learner = pid
                return
            time.sleep(0.05)
        raise AssertionError("no learner came to work")

    def stop(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.process.stdout.close()
        return code

    def wait_until(self, holds):
        """Ask for the status until something holds of it."""
        deadline = time.monotonic() + PATIENCE
        with self.client() as client:
            while time.monotonic() < deadline:
                status = client.status()
                if holds(status):
                    return
                time.sleep(0.1)
        raise AssertionError(f"never came true; the last status was {status}")


def label_of(question):
    """What is said to a question."""
    return question % 3


def answer_some(client, accepted, seen):
    """Answer what is asked; write down what the service has accepted."""
    while (lease := client.lease()) is not None:
        seen.add(lease.question)
        label = label_of(lease.question)
        key = f"answer-{len(accepted)}-{lease.question}"
        if client.answer(lease.question, label=label, key=key) == "accepted":
            accepted.append((lease.question, label))


def talk(service, seconds, accepted, seen, versions):
    """Use a service for a while; it may die at any moment."""
    until = time.monotonic() + seconds
    try:
        with service.client() as client:
            while time.monotonic() < until:
                service.send(client)
                answer_some(client, accepted, seen)
                versions.update(version.version for version in client.versions())
                time.sleep(0.1)
    except ServiceError:
        return
