"""The live demo: a service with its own stream of digits and simulated people.

All traffic goes over HTTP, as from outside. Only the true classes of the digits stay here. A
simulated person answers from them with a delay, and sometimes wrongly.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attakit.build.data import load_task
from attakit.build.models import weights_file
from attakit.build.task import Task
from attakit.client import Client, LeaseBody
from attakit.errors import ServiceError
from attakit.randomness import generator
from attakit.report.images import encode_picture
from attakit.service.demo_guide import write_guide
from attakit.service.worker import Worker
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment
from attakit.stream.digits import MEAN, STD

log = logging.getLogger(__name__)

BATCH = 5  # images per request
RATE = 20.0  # images per second
REMEMBERED = 20_000  # images whose class is known
WRONG = 0.1  # share of wrong answers
DELAY = 0.4  # seconds a simulated person thinks
LEFT = 6  # newest questions that simulated people leave to visitors


def demo_tables(folder: Path) -> dict[str, Any]:
    """Return the settings of a service for the digits; its source model must exist already."""
    task = load_task(StreamTable())
    return {
        "folder": str(folder),
        "classes": task.classes,
        "model": {"weights": str(weights_file(parse_experiment({}), task))},
        "input": {"size": 28, "channels": 1, "mean": [MEAN], "std": [STD]},
        # Short intervals, so that there is something to see within a minute.
        "labels": {"budget": 2000, "per_1000": 80, "settle_seconds": 2.0, "audit_share": 0.3},
        "learning": {"batch_size": 50, "batch_seconds": 5.0},
        "gate": {"every": 2},
        "labelling": write_guide(folder / "examples", task),
        "server": {"open": True},  # newcomers need no token
    }


@contextmanager
def simulated_traffic(address: str) -> Iterator[None]:
    """Let simulated clients send digits to a service, and people answer it, inside the block."""
    task = load_task(StreamTable())
    with Client(address) as sender, Client(address, annotator="simulated") as answerer:
        visitors = SimulatedClients(sender, task)
        with visitors, SimulatedPeople(answerer, visitors.truth, len(task.classes)):
            yield


class _Simulated(Worker):
    """A thread that talks to a service, which may be busy or stopping."""

    def on_failure(self, error: Exception) -> None:
        if isinstance(error, ServiceError):
            log.debug("%s: no answer from the service: %s", self.name, error)
        else:
            super().on_failure(error)


class SimulatedClients(_Simulated):
    """A thread that sends digits to a service, domain after domain, and records their classes.

    It sends `rate` images per second.
    """

    def __init__(self, client: Client, task: Task, *, rate: float = RATE, seed: int = 0) -> None:
        super().__init__("visitors", pause=BATCH / rate, retry_pauses=(1.0,))
        self.client = client
        self.task = task
        self.seed = seed
        self.truth: dict[str, int] = {}
        self._requests = self._batches()

    def run_once(self) -> None:
        """Send the next images."""
        images, labels = next(self._requests)
        answered = self.client.predict(images)
        self.truth.update(zip((one.sample for one in answered), labels, strict=True))
        while len(self.truth) > REMEMBERED:  # drop the oldest, because a demo may run for days
            del self.truth[next(iter(self.truth))]

    def _batches(self) -> Iterator[tuple[list[bytes], list[int]]]:
        visit = 0
        while True:
            for name, part in self.task.targets.parts.items():
                order = generator(self.seed, f"demo {name}", visit).permutation(len(part))
                for start in range(0, len(order), BATCH):
                    chosen = order[start : start + BATCH].tolist()
                    pictures = [encode_picture(one, [MEAN], [STD]) for one in part.load(chosen)]
                    labels = [int(part.labels[index]) for index in chosen]
                    yield [base64.b64decode(picture) for picture in pictures], labels
            visit += 1


class SimulatedPeople(_Simulated):
    """A thread that answers one question after the other.

    It knows the true classes of some samples and waits `delay` seconds before each answer. A share
    of `wrong` answers is wrong. It leaves the newest `left` questions to visitors.
    """

    def __init__(
        self,
        client: Client,
        truth: dict[str, int],
        classes: int,
        *,
        wrong: float = WRONG,
        delay: float = DELAY,
        left: int = LEFT,
        seed: int = 0,
    ) -> None:
        super().__init__("simulated people", pause=delay)
        self.client = client
        self.truth = truth
        self.classes = classes
        self.wrong = wrong
        self.left = left
        self.seed = seed

    def run_once(self) -> None:
        """Answer the oldest question, if more are open than are left to visitors."""
        lease = self.client.lease()
        if lease is None:
            return
        if lease.open <= self.left:
            self.client.release(lease.question)
        else:
            self._answer(lease)

    def _answer(self, lease: LeaseBody) -> None:
        question = lease.question
        label = self.truth.get(lease.sample)
        if label is None:  # sent before a restart, so its class is unknown here
            self.client.answer(question, kind="skip")
            return
        draw = generator(self.seed, "simulated answer", question)
        if draw.random() < self.wrong:
            label = (label + int(draw.integers(1, self.classes))) % self.classes
        if lease.proposed is None:
            self.client.answer(question, label=label)
        else:
            self.client.answer(question, kind="yes" if label == lease.proposed else "no")
