"""The corruptions of ImageNet-C: their names, and one image corrupted the same way every time.

Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations", ICLR 2019. https://arxiv.org/abs/1903.12261

The pictures come from the package imagecorruptions-imaug (extra `corruptions`), which draws from
NumPy's global generator, from generators of its own, or from compiled code, depending on the
corruption; here all three depend on one seed, and the global generator is put back.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attakit.errors import MissingExtra, StreamError, check_count, unknown_name

# In the order of the paper's tables: noise, blur, weather, digital.
CORRUPTIONS = (
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)
EXTRA_CORRUPTIONS = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
MOST_SEVERE = 5
SMALLEST_SIDE = 32  # pixels; the blurs and the frost need as many

_OWN_GENERATOR = frozenset({"impulse_noise", "glass_blur"})


def corrupt_image(
    pixels: NDArray[np.uint8], corruption: str, severity: int, *, seed: int
) -> NDArray[np.uint8]:
    """Corrupt an image (height, width, 3); the same arguments give the same picture.

    Parameters
    ----------
    pixels
        Red, green and blue from 0 to 255, at least 32 pixels in both directions.
    corruption
        One of `CORRUPTIONS` or `EXTRA_CORRUPTIONS`.
    severity
        From 1 to 5.
    seed
        Of the noise, from 0 to 2**32 - 1.

    Examples
    --------
    >>> grey = np.full((32, 40, 3), 128, dtype=np.uint8)
    >>> corrupt_image(grey, "gaussian_noise", 5, seed=0).shape
    (32, 40, 3)
    """
    check_corruptions([corruption])
    check_count("corrupt_image", "severity", severity, at_most=MOST_SEVERE)
    check_count("corrupt_image", "seed", seed, at_least=0, at_most=2**32 - 1)
    _check_pixels(pixels)
    settings: dict[str, Any] = {"seed": seed} if corruption in _OWN_GENERATOR else {}
    library = import_corruptions()
    with _seeded_numpy(seed):
        corrupted = library.corrupt(
            pixels, corruption_name=corruption, severity=severity, **settings
        )
    return np.asarray(corrupted, dtype=np.uint8)


def check_corruptions(names: Sequence[str]) -> None:
    """Raise `UnknownName`, with the nearest known name, for what is no corruption."""
    known = (*CORRUPTIONS, *EXTRA_CORRUPTIONS)
    for name in names:
        if name not in known:
            raise unknown_name("corruption", name, known)


def import_corruptions() -> ModuleType:
    """Import the package that corrupts images.

    >>> import_corruptions().__name__
    'imagecorruptions'
    """
    try:
        return importlib.import_module("imagecorruptions")
    except ImportError as error:
        raise MissingExtra(
            f"Corrupting images needs the package imagecorruptions-imaug, which cannot be "
            f"imported ({error}). Install it with: pip install 'attakit[corruptions]'"
        ) from error


@contextmanager
def _seeded_numpy(seed: int) -> Iterator[None]:
    """Inside, NumPy's global generator depends on the seed alone; after, it is as before."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)


def _check_pixels(pixels: NDArray[np.uint8]) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3:
        raise StreamError(
            f"corrupt_image: an image must be bytes (height, width, 3), got "
            f"{pixels.dtype} of shape {pixels.shape}."
        )
    height, width, _ = pixels.shape
    if min(height, width) < SMALLEST_SIDE:
        raise StreamError(
            f"corrupt_image: an image must be at least {SMALLEST_SIDE} pixels high and wide, got "
            f"{height} × {width}. Enlarge it first."
        )
