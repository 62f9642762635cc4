"""CIFAR-10-C and CIFAR-100-C as they are published: one NumPy file per corruption.

Clean CIFAR is published as pickles, which can run any code when they are read. They are not read:
clean images come from `clean.npy` and `clean_labels.npy`, which docs/data-sets.md says how to make.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from attakit.build.sets.catalogue import CIFAR, ImageSet
from attakit.build.sets.corruptions import CLEAN, choose_corruptions, without_clean
from attakit.build.sets.places import check_domains, find_root, tell_counts
from attakit.build.task import ProgressCallback, Task, image_task, refuse_settings
from attakit.errors import StreamError
from attakit.settings.experiment import StreamTable
from attakit.stream.corruptions import MOST_SEVERE
from attakit.stream.images import ImageSamples
from attakit.stream.pixel_arrays import pixel_samples, read_labels, read_pixels
from attakit.stream.samples import Domains

LABELS_FILE = "labels.npy"
CLEAN_FILE = "clean.npy"
CLEAN_LABELS_FILE = "clean_labels.npy"


def cifar_c(table: StreamTable, _checking: ProgressCallback) -> Task:
    """CIFAR-10-C or CIFAR-100-C at one severity; the source is clean images, if they are there."""
    refuse_settings(table, "skip_corrupt")
    known = CIFAR[table.name]
    root = find_root(table, known)
    usual = CLEAN if (root / CLEAN_FILE).exists() else None
    source, targets = choose_corruptions(table, known, usual)
    corruptions = without_clean(source, targets)
    found = {path.name: path for path in sorted(root.glob("*.npy"))}
    check_domains(root, known, found, [LABELS_FILE, *(f"{name}.npy" for name in corruptions)])
    labels = _read_labels(root, known)
    tell_counts(known, dict.fromkeys(corruptions, len(labels)))
    parts = {name: _corrupted(root, name, labels, table) for name in corruptions}
    if source == CLEAN:
        parts[CLEAN] = _clean(root, known, table)
    domains = Domains(known.classes, parts)
    return image_task(domains.only(*targets), parts[source] if source else None, table, None)


def _read_labels(root: Path, known: ImageSet) -> NDArray[np.int64]:
    """Labels of all severities, which must be the same images each time."""
    labels = read_labels(root / LABELS_FILE, known.class_count)
    count = len(labels) // MOST_SEVERE
    if not np.array_equal(labels, np.tile(labels[:count], MOST_SEVERE)):
        raise StreamError(
            f"{root / LABELS_FILE}: labels must come {MOST_SEVERE} times over, once per severity, "
            f"but the {len(labels):,} labels there do not repeat. Download the file again."
        )
    return labels


def _corrupted(
    root: Path, name: str, labels: NDArray[np.int64], table: StreamTable
) -> ImageSamples[int]:
    path = root / f"{name}.npy"
    pixels = read_pixels(path)
    _check_lengths(path, pixels, labels)
    count = len(labels) // MOST_SEVERE  # severity 1 comes first, then 2, and so on
    rows = range((table.severity - 1) * count, table.severity * count)
    return pixel_samples(pixels, labels, prefix=f"{name}/", rows=rows, size=table.size)


def _clean(root: Path, known: ImageSet, table: StreamTable) -> ImageSamples[int]:
    for name in (CLEAN_FILE, CLEAN_LABELS_FILE):
        if not (root / name).exists():
            raise StreamError(
                f"There is no {root / name} for stream.source = 'clean'. Make {CLEAN_FILE} and "
                f"{CLEAN_LABELS_FILE} from the training images of {known.title.removesuffix('-C')} "
                f"as docs/data-sets.md says; its pickles are not read, because they can run code."
            )
    pixels = read_pixels(root / CLEAN_FILE)
    labels = read_labels(root / CLEAN_LABELS_FILE, known.class_count)
    _check_lengths(root / CLEAN_FILE, pixels, labels)
    rows = range(len(labels))
    return pixel_samples(pixels, labels, prefix=f"{CLEAN}/", rows=rows, size=table.size)


def _check_lengths(path: Path, pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
    if len(pixels) != len(labels):
        raise StreamError(
            f"{path} has {len(pixels):,} images, and there are {len(labels):,} labels for it. "
            f"Download the set again."
        )
