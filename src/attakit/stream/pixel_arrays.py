"""Images in NumPy files, as CIFAR-10-C has them: mapped from disk, never unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attakit.errors import StreamError
from attakit.stream.decode import resize_pixels
from attakit.stream.images import ImageSamples


def read_pixels(path: Path) -> NDArray[np.uint8]:
    """Images (count, side, side, 3) in bytes, left on disk until they are asked for."""
    pixels = _map(path)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[3] != 3:
        raise StreamError(
            f"{path}: images must be bytes (count, height, width, 3), got {pixels.dtype} of shape "
            f"{pixels.shape}. Download the file again."
        )
    return pixels


def read_labels(path: Path, class_count: int) -> NDArray[np.int64]:
    """Class numbers; every class must appear."""
    labels = _map(path)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise StreamError(
            f"{path}: labels must be one row of whole numbers, got {labels.dtype} of shape "
            f"{labels.shape}. Download the file again."
        )
    found = np.unique(labels)
    if not np.array_equal(found, np.arange(class_count)):
        told = f"{len(found)} from {found[0]} to {found[-1]}" if len(found) else "none"
        raise StreamError(
            f"{path}: there should be the {class_count} classes 0 to {class_count - 1}, and there "
            f"are {told}. This is another data set, or a part of it."
        )
    return np.asarray(labels, dtype=np.int64)


def pixel_samples(
    pixels: NDArray[np.uint8],
    labels: NDArray[np.int64],
    *,
    prefix: str,
    rows: range,
    size: int | None = None,
) -> ImageSamples[int]:
    """Some rows of an array as samples, scaled where their size is another.

    >>> pixels, labels = np.zeros((4, 32, 32, 3), dtype=np.uint8), np.array([0, 1, 0, 1])
    >>> samples = pixel_samples(pixels, labels, prefix="fog/", rows=range(2, 4))
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


def _map(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StreamError(
            f"{path} cannot be read as a NumPy file: {error}. Download it again."
        ) from error
    if not isinstance(array, np.ndarray):
        raise StreamError(f"{path} holds several arrays; there must be one, written by np.save.")
    return array
