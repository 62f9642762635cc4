"""A service behind a real address in this process, for tests with a browser."""

import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import uvicorn
from PIL import Image
from torch import nn

from attakit.nn import Classifier, seeded
from attakit.service.models import VERSIONS
from attakit.service.predictor import Predictor
from attakit.service.storage import LabelRules, open_storage
from attakit.service.storage.rows import Question, ServedSample, Version
from attakit.service.web import create_app
from attakit.settings.service import ServiceSettings

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
CLASSES = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay")
GUESSES = ((3, 0.6), (1, 0.3), (0, 0.1))


@dataclass
class Site:
    """A running server and what it keeps."""

    address: str
    storage: object
    versions: Path  # folder of their weights

    def ask(self, count, start=0, **more):
        """Put questions about new pictures, as the learner does; returns their numbers."""
        names = [f"s{number}" for number in range(start, start + count)]
        now = time.time()
        self.storage.samples.add(
            [ServedSample(name, picture(name), 0, 0, 0.5, 1.0, now) for name in names]
        )
        return self.storage.questions.put(
            [Question(0, name, 0, "learn", 0, 1.0, GUESSES, now, **more) for name in names]
        )

    def put(self, **sample):
        """Put a question about one sample with this content; returns its number."""
        now = time.time()
        number = self.storage.samples.count()
        self.storage.samples.add(
            [
                ServedSample(
                    f"p{number}", version=0, guess=0, confidence=0.5, entropy=1.0, at=now, **sample
                )
            ]
        )
        asked = Question(0, f"p{number}", 0, "learn", 0, 1.0, GUESSES, now)
        return self.storage.questions.put([asked])[0]

    def said(self, question):
        """What counts of what people said: kind and label."""
        given = self.storage.questions.answers(question)
        return [(answer.kind, answer.label) for answer in given if not answer.withdrawn]

    def wait_for(self, question, *said):
        deadline = time.monotonic() + 60
        while self.said(question) != list(said) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert self.said(question) == list(said)


def wait_until_shown(page, question):
    """Until a labelling page shows a question."""
    page.locator(f"#desk[data-question='{question}']").wait_for()


def press(page, key, *, shows):
    """Press a key, and wait until the labelling page shows the question that follows."""
    page.keyboard.press(key)
    wait_until_shown(page, shows)


def picture(name):
    file = BytesIO()
    seed = int(name[1:])
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def make_model(classes):
    with seeded(0, "pages model"):
        return Classifier(
            nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 4), nn.Linear(4, len(classes)))
        )


@contextmanager
def open_site(folder, *, is_open=True, classes=CLASSES, tables=None, model=None, **rules):
    """A service in a folder, with rules for its labels, and other settings and another model."""
    labels = LabelRules(**({"settle_seconds": 60.0, "classes": len(classes)} | rules))
    with ExitStack() as stack:
        tables = {"input": {"size": 8}, "server": {"open": is_open}, **(tables or {})}
        settings = ServiceSettings(folder=folder, classes=classes, **tables)
        storage = stack.enter_context(open_storage(folder, labels=labels))
        storage.versions.add(Version(0, -1, "source.safetensors", "a", 0, time.time()))
        storage.versions.promote(0, "The source model.", "service")
        model = (model or make_model(classes)).eval()
        predictor = stack.enter_context(Predictor(model, 0, batch_seconds=0))
        address = stack.enter_context(serving(create_app(storage, predictor, settings)))
        (folder / VERSIONS).mkdir()
        yield Site(address, storage, folder / VERSIONS)


@contextmanager
def serving(app):
    """The address of an app or a configuration, which is served inside."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    given = isinstance(app, uvicorn.Config)
    options = app if given else uvicorn.Config(app, log_level="error")
    options.timeout_graceful_shutdown = 1
    server = uvicorn.Server(options)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(20)
