"""Known examples: samples whose class is certain, to check people with."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import torch

from attakit.class_names import class_files
from attakit.errors import SettingError, StreamError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.queries import SampleId
from attakit.service.learner.audit import Decode
from attakit.service.learner.candidates import SOURCE
from attakit.service.learner.people import SamplePrediction, sample_predictions
from attakit.service.storage.rows import ServedSample
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

KNOWN_LABELS = "known"  # the value with the class of each known example
MOST_KNOWN = 10  # of one class


def store_known(
    settings: ServiceSettings, storage: Storage, source: Classifier, decode: Decode, at: float
) -> None:
    """Store the known examples as samples, with their classes in a value for the gate.

    Servers on other machines show them from the database. Examples that are no longer in the folder
    do not count any more.
    """
    folder = settings.gate.known
    if folder is None:
        if storage.key_values.get(KNOWN_LABELS):
            storage.key_values.set(KNOWN_LABELS, {})
        return
    found = {_name(content): (label, content) for label, content in _read(folder, settings.classes)}
    if not found:
        raise SettingError(
            f"gate.known: {folder} has no files in subfolders with the names of the classes, such "
            f"as {folder / settings.classes[0]}. Create one subfolder per class."
        )
    samples = []
    for name, (_, content) in found.items():
        seen = _predict(source, decode, name, content, folder)
        (guess, confidence), *_ = seen.guesses
        text = content.decode() if settings.input.kind == "text" else None
        samples.append(
            ServedSample(name, content, SOURCE, guess, confidence, seen.entropy, at, text=text)
        )
    storage.samples.add_known(samples)
    labels = {name: label for name, (label, _) in found.items()}
    storage.key_values.change(KNOWN_LABELS, lambda _: labels)


def _read(folder: Path, classes: tuple[str, ...]) -> Iterator[tuple[int, bytes]]:
    if not folder.is_dir():
        raise SettingError(
            f"gate.known: there is no folder {folder}. Give a folder with one subfolder of "
            f"examples per class."
        )
    for label, name in enumerate(classes):
        for file in class_files(folder, name)[:MOST_KNOWN]:
            yield label, file.read_bytes()


def _name(content: bytes) -> str:
    """Return a name that looks like any other sample's, and is the same after a restart."""
    return sha256(content).hexdigest()[:32]


def _predict(
    source: Classifier, decode: Decode, name: str, content: bytes, folder: Path
) -> SamplePrediction:
    try:
        inputs = decode(content)[None]
    except StreamError as error:
        raise SettingError(f"gate.known: a file in {folder} cannot be used. {error}") from error
    sample = SampleId(name)
    with torch.no_grad():
        return sample_predictions([sample], source(place(inputs, source.device)))[sample]
