"""CIFAR-10-C and CIFAR-100-C in their published form: one NumPy file per corruption.

Clean CIFAR is published as pickles, which can run any code when they are read, so attakit does not
read them. Clean images come from `clean.npy` and `clean_labels.npy`. docs/data-sets.md shows how to
make them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attakit.build.sets.catalogue import CIFAR, ImageSet
from attakit.build.sets.corruptions import CLEAN, choose_corruptions, without_clean
from attakit.build.sets.places import check_domains, find_root, warn_of_counts
from attakit.build.task import ProgressCallback, Task, image_task, refuse_settings
from attakit.errors import StreamError
from attakit.settings.experiment import StreamTable
from attakit.stream.corruptions import MOST_SEVERE
from attakit.stream.decode import resize_pixels
from attakit.stream.images import ImageSamples
from attakit.stream.samples import Domains

LABELS_FILE = "labels.npy"
CLEAN_FILE = "clean.npy"
CLEAN_LABELS_FILE = "clean_labels.npy"


def cifar_c(table: StreamTable, _checking: ProgressCallback) -> Task:
    """Load CIFAR-10-C or CIFAR-100-C at one severity; the source is clean images, if present."""
    refuse_settings(table, "skip_corrupt")
    known = CIFAR[table.name]
    root = find_root(table, known)
    usual = CLEAN if (root / CLEAN_FILE).exists() else None
    source, targets = choose_corruptions(table, known, usual)
    corruptions = without_clean(source, targets)
    found = {path.name: path for path in sorted(root.glob("*.npy"))}
    check_domains(root, known, found, [LABELS_FILE, *(f"{name}.npy" for name in corruptions)])
    labels = _read_labels(root, known)
    warn_of_counts(known, dict.fromkeys(corruptions, len(labels)))
    parts = {name: _corrupted(root, name, labels, table) for name in corruptions}
    if source == CLEAN:
        parts[CLEAN] = _clean(root, known, table)
    domains = Domains(known.classes, parts)
    return image_task(domains.only(*targets), parts[source] if source else None, table, None)


def _read_labels(root: Path, known: ImageSet) -> NDArray[np.int64]:
    """Read the labels of all severities, which must repeat the same images."""
    labels = _map_labels(root / LABELS_FILE, known.class_count)
    count = len(labels) // MOST_SEVERE
    if not np.array_equal(labels, np.tile(labels[:count], MOST_SEVERE)):
        raise StreamError(
            f"{root / LABELS_FILE}: labels must repeat {MOST_SEVERE} times, once per severity, but "
            f"the {len(labels):,} labels there do not repeat. Download the file again."
        )
    return labels


def _corrupted(
    root: Path, name: str, labels: NDArray[np.int64], table: StreamTable
) -> ImageSamples[int]:
    path = root / f"{name}.npy"
    pixels = _map_pixels(path)
    _check_lengths(path, pixels, labels)
    count = len(labels) // MOST_SEVERE  # severity 1 comes first, then 2, and so on
    rows = range((table.severity - 1) * count, table.severity * count)
    return _pixel_samples(pixels, labels, prefix=f"{name}/", rows=rows, size=table.size)


def _clean(root: Path, known: ImageSet, table: StreamTable) -> ImageSamples[int]:
    for name in (CLEAN_FILE, CLEAN_LABELS_FILE):
        if not (root / name).exists():
            raise StreamError(
                f"There is no {root / name} for stream.source = 'clean'. Make {CLEAN_FILE} and "
                f"{CLEAN_LABELS_FILE} from the training images of "
                f"{known.title.removesuffix('-C')}. docs/data-sets.md shows how. attakit does not "
                "read its pickles, because they can run code."
            )
    pixels = _map_pixels(root / CLEAN_FILE)
    labels = _map_labels(root / CLEAN_LABELS_FILE, known.class_count)
    _check_lengths(root / CLEAN_FILE, pixels, labels)
    rows = range(len(labels))
    return _pixel_samples(pixels, labels, prefix=f"{CLEAN}/", rows=rows, size=table.size)


def _check_lengths(path: Path, pixels: NDArray[np.uint8], labels: NDArray[np.int64]) -> None:
    if len(pixels) != len(labels):
        raise StreamError(
            f"{path} has {len(pixels):,} images, but there are {len(labels):,} labels for it. "
            "Download the set again."
        )


def _map_pixels(path: Path) -> NDArray[np.uint8]:
    """Map images (count, side, side, 3) in bytes, left on disk until they are needed."""
    pixels = _map_file(path)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3:
        raise StreamError(
            f"{path}: images must be bytes (count, height, width, 3), got {pixels.dtype} of shape "
            f"{pixels.shape}. Download the file again."
        )
    return pixels


def _map_labels(path: Path, class_count: int) -> NDArray[np.int64]:
    """Map class numbers; every class must appear."""
    labels = _map_file(path)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise StreamError(
            f"{path}: labels must be one row of whole numbers, got {labels.dtype} of shape "
            f"{labels.shape}. Download the file again."
        )
    found = np.unique(labels)
    if not np.array_equal(found, np.arange(class_count)):
        range_found = f"{len(found)} from {found[0]} to {found[-1]}" if len(found) else "none"
        raise StreamError(
            f"{path}: expected the {class_count} classes 0 to {class_count - 1}, got "
            f"{range_found}. This is another data set, or a part of it. Download the set again."
        )
    return np.asarray(labels, dtype=np.int64)


def _pixel_samples(
    pixels: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    prefix: str,
    rows: range,
    size: int | None = None,
) -> ImageSamples[int]:
    """Return some rows of an array as samples, scaled if their size differs.

    >>> pixels, labels = np.zeros((4, 32, 32, 3), dtype=np.uint8), np.array([0, 1, 0, 1])
    >>> samples = _pixel_samples(pixels, labels, prefix="fog/", rows=range(2, 4))
    >>> samples.names, samples.load([0]).shape
    (('fog/2', 'fog/3'), torch.Size([1, 3, 32, 32]))
    """
    side = size or pixels.shape[1]
    return ImageSamples(
        rows,
        [f"{prefix}{row}" for row in rows],
        labels[rows.start : rows.stop].tolist(),
        size=side,
        decode=lambda row: resize_pixels(np.asarray(pixels[row]), side),
    )


def _map_file(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StreamError(
            f"{path} cannot be read as a NumPy file: {error}. Download it again."
        ) from error
    if not isinstance(array, np.ndarray):
        raise StreamError(f"{path} holds several arrays; there must be one, written by np.save.")
    return array
