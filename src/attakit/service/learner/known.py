"""Known examples: samples whose class is certain, to check people with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import torch
from torch import Tensor

from attakit.class_names import class_files, plain_name
from attakit.errors import SettingError, StreamError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.queries import SampleId
from attakit.service.learner.audit import Decode
from attakit.service.learner.candidates import SOURCE
from attakit.service.learner.people import sample_predictions
from attakit.service.storage.rows import ServedSample
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

KNOWN_LABELS = "known"  # the value with the class of each known example
MOST_KNOWN = 10  # examples of one class that are used


@dataclass(frozen=True, slots=True)
class KnownExample:
    """A sample whose class is certain."""

    label: int
    content: bytes
    inputs: Tensor

    @property
    def name(self) -> SampleId:
        """A name that looks like any other sample's, and is the same after a restart."""
        return SampleId(sha256(self.content).hexdigest()[:32])


def read_known(settings: ServiceSettings, decode: Decode) -> tuple[KnownExample, ...]:
    """Read the known examples in the folder of the settings, or raise `SettingError`."""
    folder = settings.gate.known
    if folder is None:
        return ()
    if not folder.is_dir():
        raise SettingError(
            f"gate.known: there is no folder {folder}. Give a folder with one subfolder of "
            f"examples per class."
        )
    _check_names(folder, settings.classes)
    found = tuple(_read(folder, settings.classes, decode))
    if not found:
        raise SettingError(
            f"gate.known: {folder} has no files in subfolders with the names of the classes, such "
            f"as {folder / settings.classes[0]}. Create one subfolder per class."
        )
    return found


def _check_names(folder: Path, classes: tuple[str, ...]) -> None:
    """Raise `SettingError` for a misspelt class, whose examples would be left out silently."""
    known = {plain_name(name) for name in classes}
    places = [one.name for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")]
    unknown = sorted(name for name in places if plain_name(name) not in known)
    if unknown:
        raise SettingError(
            f"gate.known: the subfolder {unknown[0]!r} of {folder} is not a class. Classes: "
            f"{', '.join(classes[:10])}."
        )


def _read(folder: Path, classes: tuple[str, ...], decode: Decode) -> Iterator[KnownExample]:
    for label, name in enumerate(classes):
        for file in class_files(folder, name)[:MOST_KNOWN]:
            content = file.read_bytes()
            try:
                yield KnownExample(label, content, decode(content))
            except StreamError as error:
                raise SettingError(f"gate.known: {file} cannot be used. {error}") from error


def store_known(
    settings: ServiceSettings, storage: Storage, source: Classifier, decode: Decode, at: float
) -> None:
    """Store the known examples as samples, with their classes in a value for the gate.

    Servers on other machines show them from the database. Examples that are no longer in the folder
    do not count any more.
    """
    found = read_known(settings, decode)
    is_text = settings.input.kind == "text"
    storage.samples.add_known([_as_sample(one, source, at, is_text=is_text) for one in found])
    labels = {one.name: one.label for one in found}
    if labels != storage.key_values.get(KNOWN_LABELS, {}):
        storage.key_values.set(KNOWN_LABELS, labels)


def _as_sample(
    example: KnownExample, source: Classifier, at: float, *, is_text: bool
) -> ServedSample:
    with torch.no_grad():
        prediction = source(place(example.inputs[None], source.device))
    seen = sample_predictions([example.name], prediction)[example.name]
    (guess, confidence), *_ = seen.guesses
    text = example.content.decode() if is_text else None
    return ServedSample(
        example.name, example.content, SOURCE, guess, confidence, seen.entropy, at, text=text
    )
