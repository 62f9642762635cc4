"""A service in miniature: a tiny model, a clock that is set, and people who obey."""

import threading
import time
from contextlib import contextmanager
from io import BytesIO

import numpy as np
import torch

from attakit.nn.classifier import Classifier
from attakit.service.learner.live import LiveLearner
from attakit.service.learner.process import run_learner
from attakit.service.saved_settings import open_service
from attakit.service.storage.rows import ServedSample
from attakit.settings.service import ServiceSettings
from attakit.testing import tiny_classifier


def encode(row):
    file = BytesIO()
    np.save(file, np.asarray(row, dtype=np.float32), allow_pickle=False)
    return file.getvalue()


def decode(content):
    return torch.from_numpy(np.load(BytesIO(content), allow_pickle=False))


METHOD = {"name": "simatta", "high_entropy_bound": 0.0, "trainer": {"max_updates": 3}}


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Miniature:
    """One service folder; the learner can be dropped and made again, as after a crash."""

    def __init__(self, folder, model=None, url=None, **tables):
        tables.setdefault("learning", {"batch_size": 10, "checkpoint_every": 3})
        tables.setdefault("method", {**METHOD, "selector": {"cluster_growth": 1}})
        tables.setdefault("classes", ("a", "b", "c"))
        self.settings = ServiceSettings(folder=folder, database=url, **tables)
        self.now = 1000.0
        self.model = tiny_classifier().eval() if model is None else model
        self.storage = self.open_storage()
        self.learner = None
        self.served = 0

    def open_storage(self):
        return open_service(self.settings, clock=lambda: self.now)

    def start(self, decode=decode):
        """Make a learner as a new process would, and let it resume."""
        source = Classifier(self.model)
        self.learner = LiveLearner(
            self.settings, self.storage, source, decode, clock=lambda: self.now
        )
        self.learner.resume()
        return self.learner

    @contextmanager
    def learning(self):
        """Inside, a learner works in a thread, on the clock on the wall."""
        stop = threading.Event()
        source = Classifier(self.model)
        thread = threading.Thread(
            target=run_learner, args=(self.settings, source, decode), kwargs={"stop": stop}
        )
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def serve(self, rows, guesses=None, version=0):
        """Let samples come in; returns their names."""
        names = [f"s{self.served + number}" for number in range(len(rows))]
        self.served += len(rows)
        guesses = guesses or [0] * len(rows)
        self.storage.samples.add(
            [
                ServedSample(name, encode(row), version, guess, 0.5, 0.5, self.now)
                for name, row, guess in zip(names, rows, guesses, strict=True)
            ]
        )
        return names

    def serve_batch(self, number, size=10, shift=0.0):
        random = np.random.default_rng(number)
        return self.serve(random.normal(size=(size, 4)) + shift)

    def answer(self, say, limit=10_000):
        """Let somebody answer open questions: with a class, or None to skip."""
        done = 0
        while done < limit and (lease := self.storage.questions.lease("ada")) is not None:
            question = lease.question
            label = say(question)
            kind = "skip" if label is None else "label"
            key = f"{question.question}-{self.now}"
            self.storage.questions.answer(question.question, "ada", kind, label, key)
            done += 1
        self.now += self.settings.labels.settle_seconds + 1
        return done


@contextmanager
def makes_miniatures(folder, new_schema=None):
    made = []

    def make(name="service", **tables):
        url = new_schema(name) if new_schema else None
        made.append(Miniature(folder / name, url=url, **tables))
        return made[-1]

    yield make
    for one in made:
        one.storage.close()
