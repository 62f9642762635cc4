"""A whole service without a learner: it says which colour is brightest, in three versions.

The source model always says red, version 1 is right, and version 2 always says green.
"""

import time
from contextlib import contextmanager
from io import BytesIO

import torch
from PIL import Image
from torch import nn

from attakit.nn.classifier import Classifier
from attakit.service.learner.candidates import VersionFiles
from attakit.service.models import source_model
from attakit.service.saved_settings import open_service
from attakit.service.serve import prepare_files, running_service
from attakit.service.storage import LabelRules, open_storage
from attakit.service.storage.rows import Gate, Question, ServedSample, Turn
from attakit.settings.service import ServiceSettings
from live_site import Site, serving

COLOURS = ("red", "green", "blue")
SIDE = 8


def colour_model(favourite=0):
    """A model of three colours that always says one of them; None lets it look."""
    linear = nn.Linear(3 * SIDE * SIDE, 3)
    with torch.no_grad():
        channels = torch.eye(3).repeat_interleave(SIDE * SIDE, dim=1)
        linear.weight.copy_(channels if favourite is None else 0 * channels)
        linear.bias.copy_(torch.tensor([float(label == favourite) for label in range(3)]))
    return nn.Sequential(nn.Flatten(), linear)


def picture(label, dark=0):
    """A picture whose brightest colour is a class."""
    file = BytesIO()
    pixel = [40 + dark, 40 + dark, 40 + dark]
    pixel[label] = 220
    Image.new("RGB", (16, 16), tuple(pixel)).save(file, "PNG")
    return file.getvalue()


@contextmanager
def open_colours(folder, **tables):
    """Yields the running service as a `Site`."""
    tables = {
        "model": {"name": "colour_service:colour_model"},
        "input": {"size": SIDE},
        "labels": {"settle_seconds": 30.0},
        "server": {"open": True},
        **tables,
    }
    settings = ServiceSettings(folder=folder, classes=COLOURS, **tables)
    source = source_model(settings)
    with open_service(settings) as storage:
        files = prepare_files(settings, storage, source)
        for number, favourite in ((1, None), (2, 1)):
            _add_version(storage, files, number, favourite)
        storage.versions.promote(1, "Passed.", "learner")
        with (
            running_service(settings, storage, source, learner=False) as app,
            serving(app) as address,
        ):
            yield Site(address, storage, folder / "versions")


def _add_version(storage, files: VersionFiles, number, favourite):
    model = Classifier(colour_model(favourite)).eval()
    turn = Turn(number - 1, (), 0, at=time.time())
    storage.turns.plan(turn)
    storage.turns.finish(turn.number, {"entropy": 0.5})
    files.write(model.model, files.name(model.model), turn, received=9 * number)
    passed = favourite is None
    reason = "Passed." if passed else "Held back: it is worse."
    storage.versions.gate(number, Gate(passed, reason, {"candidate_accuracy": 0.5}))


def ask(site, labels, purpose="learn"):
    """Put questions about pictures of these classes, as the learner does; returns their numbers."""
    now, before = time.time(), site.storage.samples.count()
    names = [f"{purpose}{before + place}" for place in range(len(labels))]
    guesses = ((0, 0.6), (1, 0.3), (2, 0.1))
    site.storage.samples.add(
        [
            ServedSample(name, picture(label, 5 * place), 0, 0, 0.6, 0.9, now)
            for place, (name, label) in enumerate(zip(names, labels, strict=True))
        ]
    )
    return site.storage.questions.put(
        [
            Question(0, name, 0, purpose, 0, 1.0, guesses, now, source_guess=0, source_entropy=0.5)
            for name in names
        ]
    )


def audit(site, labels):
    """Have audit questions answered rightly, and settled at once."""
    for number, label in zip(ask(site, labels, "audit"), labels, strict=True):
        site.storage.questions.answer(number, "grace", "label", label, f"audit {number}")
    at_once = LabelRules(settle_seconds=0.0, classes=len(COLOURS))
    with open_storage(site.versions.parent, labels=at_once) as hasty:
        hasty.questions.settle()
