"""A small service in a process of its own, for tests that kill it."""

import time

from points_service import SERVICE, PointsService, draw_points

from attakit.client import Client
from attakit.errors import ServiceError
from attakit.randomness import generator
from attakit.service.learner.leading import LOCK_FILE

TABLES = """
[method]
{method}
[labels]
budget = {budget}
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
PATIENCE = 300.0


def tables_of(database, method="simatta", budget="100_000"):
    """The settings of a service that people answer at once."""
    tables = SERVICE + TABLES.format(method=METHODS[method], budget=budget)
    return f'database = "{database}"\n' + tables


class LiveService(PointsService):
    """A service that anybody on this machine may use."""

    def __init__(self, folder, database, method="simatta"):
        super().__init__(folder, tables_of(database, method))
        self.sent = 0
        self.learner = ""  # process number of the last one seen

    def start(self):
        self.launch()
        assert self.line().startswith("Serving on ")

    def client(self, name="Ada"):
        return Client(self.address, annotator=name, pauses=())

    def send(self, client):
        self.sent += 1
        return client.predict(points_of(self.sent))

    def wait_for_learner(self):
        """Until a learner of this server has begun: it replays its log, or looks for work."""
        lock = self.live / LOCK_FILE
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if lock.exists() and (pid := lock.read_text()) and pid != self.learner:
                self.learner = pid
                return
            time.sleep(0.05)
        raise AssertionError("no learner came to work")

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


def points_of(number):
    """The points of a request."""
    return draw_points(generator(0, "points of a test", number))


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
