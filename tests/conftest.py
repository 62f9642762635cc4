"""What tests of whole runs share: one trained source model, and digits that are read once."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from PIL import Image

import attakit
from attakit.build import data
from attakit.build.models import CACHE_VARIABLE, digits_model
from attakit.report.pictures import PICTURES_FILE
from attakit.report.runs import read_run
from attakit.settings.experiment import StreamTable
from needed import do_without
from small_experiments import make_experiment

# The same examples every time, however slow the machine: what is found must be found again.
settings.register_profile(
    "fixed", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("fixed")

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30  # bytes; containers often have only a little


def pytest_configure():
    """Put temporary files in memory where there is room: no test needs to wait for a disk."""
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("TMPDIR", str(MEMORY))
        tempfile.tempdir = None  # look at TMPDIR again


def pytest_collection_modifyitems(items):
    """Run slow tests first: at the end, one of them would keep one worker busy and others idle."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def all_digits():
    return data.drawn_digits()


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory):
    """A folder with the source model of digits, trained by whichever worker comes first."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "source-models"
    with (shared / "source-models.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        patch.setenv(CACHE_VARIABLE, str(folder))
        digits_model(data.load_task(StreamTable()))
    return folder


@pytest.fixture
def quick_digits(monkeypatch, model_cache):
    """Runs on digits in this process need no training."""
    threads = torch.get_num_threads()
    monkeypatch.setenv(CACHE_VARIABLE, str(model_cache))
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def small_run(tmp_path, quick_digits):
    """Makes a short experiment: eight steps of twenty digits, and few updates."""

    def make(folder="run", **tables):
        settings = {
            "threads": 1,
            "stream": {"targets": ["outline"], "share": 0.2, "batch_size": 20},
            "method": {"selector": {"inits": 1}, "trainer": {"max_updates": 3}},
            "labels": {"budget": 20},
            "report": {"source_every": 0, "save_every": 3, "post_adaptation": False},
        }
        return make_experiment(settings, tables, tmp_path / folder)

    return make


@pytest.fixture
def program_environment(model_cache):
    """Environment in which `python -m attakit` finds this package and the trained model."""
    return {
        **os.environ,
        CACHE_VARIABLE: str(model_cache),
        "PYTHONPATH": str(Path(attakit.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
    }


@pytest.fixture
def image_tree(tmp_path):
    """A small tree of images: domains photo, sketch and sculpture with classes cat and dog."""
    root = tmp_path / "images"
    random = np.random.default_rng(0)
    for domain, brightness in (("photo", 0), ("sketch", 40), ("sculpture", 80)):
        for kind, colour in (("cat", (200, 40, 40)), ("dog", (40, 40, 200))):
            folder = root / domain / kind
            folder.mkdir(parents=True)
            for number in range(8):
                noise = random.integers(0, 40, (16, 16, 3))
                pixels = (np.array(colour) + noise + brightness).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return root


@pytest.fixture
def results():
    """Reads all that a run wrote, but for times and memory."""
    measured = {"seconds", "setup_seconds", "memory_mb", "peak_memory_mb"}

    def read(folder):
        run = read_run(folder)
        lines = [
            {name: value for name, value in line.items() if name not in measured}
            for line in [*run.steps, run.end]
        ]
        pictures = (folder / PICTURES_FILE).read_bytes()
        return lines, pictures, sorted(path.name for path in folder.iterdir() if path.is_file())

    return read


CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - may be missing
    except ImportError:
        do_without("Playwright is not installed: pip install -e '.[dev]'")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = [path for name in names if (path := shutil.which(name))]
    with sync_playwright() as playwright:
        path = found[0] if found else playwright.chromium.executable_path
        if not os.path.exists(path):
            do_without("no Chromium: install it, or run `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()
