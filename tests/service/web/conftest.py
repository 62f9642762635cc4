"""A service in this process: a tiny model, a database in a folder of the test, and a client."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient
from torch import nn

from attakit.nn import Classifier, seeded
from attakit.service.models import VERSIONS
from attakit.service.predictor import Predictor
from attakit.service.storage import (
    LabelRules,
    Question,
    ServedSample,
    Storage,
    Version,
    open_storage,
)
from attakit.service.web import create_app
from attakit.settings.service import ServiceSettings
from live_site import DESKTOP, open_site, wait_until_shown

CLASSES = ("cat", "dog", "owl")


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self):
        return self.now


def small_image_model(seed=0):
    with seeded(seed, "image model"):
        return nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 8), nn.ReLU(), nn.Linear(8, 3))


def small_array_model():
    with seeded(0, "array model"):
        return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


@dataclass
class Live:
    """A running service and what it is made of."""

    client: TestClient
    storage: Storage
    predictor: Predictor
    clock: Clock
    asked: list[int] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)

    @property
    def state(self):
        return self.client.app.state.service

    def save_version(self, number=1):
        """Save a version as the learner does; returns its file."""
        version = Version(number, number, f"{number}.safetensors", "x", 5, self.clock())
        self.storage.versions.add(version)
        file = self.state.settings.folder / VERSIONS / version.file
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"weights")
        return file

    def forget_what_was_seen(self):
        """Look at tokens anew, as happens after a second."""
        self.state.guard.forget()

    def serve(self, count=1):
        """Have pictures answered and kept; returns the names of the samples."""
        files = [("files", ("a.png", png(colour=40 * n), "image/png")) for n in range(count)]
        response = self.client.post("/v1/predict", files=files)
        assert response.status_code == 200, response.text
        assert self.state.writer.flush()
        self.state.overview.changed()
        names = [one["sample"] for one in response.json()["predictions"]]
        self.samples += names
        return names

    def ask(self, count=1, **more):
        """Put questions about new samples, as the learner does."""
        samples = self.serve(count)
        numbers = self.storage.questions.put(
            [
                Question(0, sample, 0, "learn", 0, 1.0, ((1, 0.6), (0, 0.4)), self.clock(), **more)
                for sample in samples
            ]
        )
        self.asked += numbers
        self.state.overview.changed()
        return list(numbers)

    def sample(self, name="s1", content=None):
        """Keep a sample that was answered in some other way."""
        self.storage.samples.add([ServedSample(name, content, 0, 1, 0.9, 0.3, self.clock())])
        return name


def png(size=16, colour=120, mode="RGB", form="PNG"):
    file = BytesIO()
    fill = colour if mode != "RGB" else (colour, 20, 200 - colour % 200)
    Image.new(mode, (size, size), fill).save(file, form)
    return file.getvalue()


def noise(size=16, seed=0):
    file = BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def start(tmp_path):
    """Starts services with settings of the test's own."""
    running = []

    def begin(
        *,
        base_url="http://localhost",
        peer="127.0.0.1",
        model=small_image_model,
        rules=None,
        address=None,
        **tables,
    ):
        tables.setdefault("input", {"size": 8})
        server = tables.get("server", {})
        tables["server"] = {"open": "host" not in server, **server}
        settings = ServiceSettings(folder=tmp_path, classes=CLASSES, **tables)
        clock = Clock()
        labels = rules or LabelRules(settle_seconds=5, classes=len(CLASSES))
        storage = open_storage(tmp_path / str(len(running)), address, labels=labels, clock=clock)
        storage.versions.add(Version(0, -1, "source.safetensors", "abc", 0, clock()))
        storage.versions.promote(0, "The source model.", "service")
        predictor = Predictor(Classifier(model()).eval(), 0, batch_seconds=0)
        predictor.start()
        client = TestClient(
            create_app(storage, predictor, settings, clock=clock),
            base_url=base_url,
            client=(peer, 50_000),
        )
        client.__enter__()
        live = Live(client, storage, predictor, clock)
        running.append(live)
        return live

    yield begin
    for live in running:
        live.client.__exit__(None, None, None)
        live.predictor.stop()
        live.storage.close()


@pytest.fixture
def array_model():
    return small_array_model


@pytest.fixture
def image_model():
    """Makes a model that answers images."""
    return lambda seed=0: Classifier(small_image_model(seed)).eval()


@pytest.fixture
def image_file():
    """Makes the bytes of a plain image in some format."""
    return lambda form: png(form=form)


@pytest.fixture
def picture():
    """Makes the bytes of a small noisy image file."""
    return noise


@pytest.fixture
def live(start):
    return start()


@pytest.fixture
def arrays(start):
    return start(input={"kind": "array", "shape": (4,)}, model=small_array_model)


@pytest.fixture
def start_site(tmp_path):
    """Starts services behind real addresses, with rules of the test's own."""
    with ExitStack() as running:
        counted = iter(range(100))

        def begin(**options):
            folder = tmp_path / f"site-{next(counted)}"
            return running.enter_context(open_site(folder, **options))

        yield begin


@pytest.fixture
def site(start_site):
    return start_site()


@pytest.fixture
def visit(chromium, site):
    """Opens pages as different people; in the end nothing may have been complained about."""
    opened, complaints = [], []

    def open_page(path, name="ada", *, at=site, viewport=DESKTOP, **options):
        context = chromium.new_context(viewport=viewport, **options)
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        if name:
            page.add_init_script(f"localStorage.setItem('attakit.name', '{name}')")
        page.on("console", lambda message: note(complaints, message))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: r.url.startswith(at.address) or complaints.append(r.url))
        page.goto(at.address + path)
        return page

    yield open_page
    for context in opened:
        context.close()
    assert complaints == []


@pytest.fixture
def labelling_page(visit):
    """Opens the labelling page, and waits until it shows a question."""

    def open_page(question, *words, **options):
        page = visit("/label", *words, **options)
        wait_until_shown(page, question)
        return page

    return open_page


def note(complaints, message):
    """Chromium itself complains about what cannot be reached; that is what some tests are about."""
    expected = ("ERR_INTERNET_DISCONNECTED", "ERR_FAILED", "status of 409", "status of 401")
    if message.type in ("error", "warning") and not any(e in message.text for e in expected):
        complaints.append(message.text)
