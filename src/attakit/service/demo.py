"""A service with a stream and people of its own, so that a newcomer sees the whole cycle.

Everything goes over HTTP, as it would from outside. Only the truth about the digits stays here:
a simulated person answers from it, a little late and now and then wrongly.
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from attakit.bench.demo import METHODS
from attakit.build.data import Task, load_task
from attakit.build.models import weights_file
from attakit.client import Client
from attakit.errors import ServiceError
from attakit.randomness import generator
from attakit.report.images import encode_picture
from attakit.settings.experiment import StreamTable
from attakit.settings.load import parse_experiment
from attakit.stream.digits import MEAN, STD

log = logging.getLogger(__name__)

BATCH = 5  # images per request
RATE = 20.0  # images per second
REMEMBERED = 20_000  # images whose class is known
WRONG = 0.1  # share of wrong answers
DELAY = 0.4  # seconds a simulated person thinks


def demo_tables(folder: Path) -> dict[str, Any]:
    """The tables of a service for the digits, whose source model must have been trained before."""
    task = load_task(StreamTable())
    return {
        "folder": str(folder),
        "classes": task.classes,
        "model": {"weights": str(weights_file(parse_experiment({}), task))},
        "input": {"size": 28, "channels": 1, "mean": [MEAN], "std": [STD]},
        "method": METHODS["simatta"],
        # Impatient, so that there is something to see within a minute.
        "labels": {"budget": 2000, "settle_seconds": 2.0, "audit_share": 0.3},
        "learning": {"batch_size": 50, "batch_seconds": 5.0},
        "gate": {"audit_needed": 15, "every": 2},
    }


@contextmanager
def simulated_traffic(address: str, *, rate: float = RATE) -> Iterator[None]:
    """Inside, a service is visited by digits and answered by simulated people.

    Parameters
    ----------
    address
        Of the service.
    rate
        Images per second.
    """
    task = load_task(StreamTable())
    visitors = Visitors(task, rate=rate)
    people = SimulatedPeople(visitors.truth, len(task.classes))
    with (
        Client(address) as sender,
        Client(address, annotator="simulated") as answerer,
        beside(partial(visitors.send, sender), partial(people.answer, answerer)),
    ):
        yield


@contextmanager
def beside(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Inside, functions run in threads of their own; at the end their event tells them to stop."""
    stop = threading.Event()
    threads = [threading.Thread(target=work, args=(stop,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


class Visitors:
    """Sends digits to a service, one domain after the other, and knows what they are.

    Parameters
    ----------
    task
        The digits.
    rate
        Images per second.
    seed
        Of the order.
    """

    def __init__(self, task: Task, *, rate: float = RATE, seed: int = 0) -> None:
        self.task = task
        self.rate = rate
        self.seed = seed
        self.truth: dict[str, int] = {}

    def send(self, client: Client, stop: threading.Event) -> None:
        """Send images until told to stop, over and over."""
        for images, labels in self._batches():
            if stop.is_set():
                return
            try:
                answered = client.predict(images)
            except ServiceError as error:
                log.debug("the demo could not send images: %s", error)
                stop.wait(1.0)
                continue
            self._remember([each.sample for each in answered], labels)
            stop.wait(BATCH / self.rate)

    def _remember(self, samples: list[str], labels: list[int]) -> None:
        self.truth.update(zip(samples, labels, strict=True))
        while len(self.truth) > REMEMBERED:  # the oldest: a demo may be left running
            del self.truth[next(iter(self.truth))]

    def _batches(self) -> Iterator[tuple[list[bytes], list[int]]]:
        visit = 0
        while True:
            for name, part in self.task.targets.parts.items():
                order = generator(self.seed, f"demo {name}", visit).permutation(len(part))
                for start in range(0, len(order), BATCH):
                    chosen = order[start : start + BATCH].tolist()
                    inputs = part.load(chosen)
                    pictures = [encode_picture(one, [MEAN], [STD]) for one in inputs]
                    labels = [int(part.labels[place]) for place in chosen]
                    yield [base64.b64decode(picture) for picture in pictures], labels
            visit += 1


class SimulatedPeople:
    """Answers one question after the other, each a little late, and now and then wrongly.

    Parameters
    ----------
    truth
        What the samples are, as far as it is known here.
    classes
        How many there are.
    wrong
        Share of wrong answers.
    delay
        Seconds before each answer.
    seed
        Of the wrong answers.
    """

    def __init__(
        self,
        truth: dict[str, int],
        classes: int,
        *,
        wrong: float = WRONG,
        delay: float = DELAY,
        seed: int = 0,
    ) -> None:
        self.truth = truth
        self.classes = classes
        self.wrong = wrong
        self.delay = delay
        self.seed = seed

    def answer(self, client: Client, stop: threading.Event) -> None:
        """Answer until told to stop."""
        while not stop.wait(self.delay):
            try:
                lease = client.lease()
                if lease is not None:
                    self._answer_one(client, lease.question, lease.sample)
            except ServiceError as error:
                log.debug("a simulated person could not answer: %s", error)

    def _answer_one(self, client: Client, question: int, sample: str) -> None:
        label = self.truth.get(sample)
        if label is None:  # from before a restart: nobody here remembers it
            client.answer(question, kind="skip")
            return
        draw = generator(self.seed, "simulated answer", question)
        if draw.random() < self.wrong:
            label = (label + int(draw.integers(1, self.classes))) % self.classes
        client.answer(question, label=label)
