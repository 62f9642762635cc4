"""The corruptions of ImageNet-C: their names, and deterministic corruption of an image.

Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations", ICLR 2019. https://arxiv.org/abs/1903.12261

Large images use the package imagecorruptions-imaug (extra `corruptions`), which has the strengths
of ImageNet-C, for images of 224 pixels. Depending on the corruption, it draws from NumPy's global
generator, from its own generators, or from compiled code. Here all three depend on one seed, and
the global generator is restored. Small images use the strengths of CIFAR-C or Tiny-ImageNet-C
instead (`small_corruptions`).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from attakit.errors import MissingExtra, StreamError, check_choice, check_count, unknown_name
from attakit.stream.corruption_parameters import ParameterSet, small_values, usual_parameters

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
SMALLEST_SIDE = 32  # pixels; the blurs and the frost need that many

PARAMETERS: tuple[ParameterSet | Literal["auto"], ...] = ("auto", "cifar", "tiny", "imagenet")

_OWN_GENERATOR = frozenset({"impulse_noise", "glass_blur"})


def corrupt_image(
    pixels: NDArray[np.uint8],
    corruption: str,
    severity: int,
    *,
    seed: int,
    parameters: ParameterSet | Literal["auto"] = "auto",
) -> NDArray[np.uint8]:
    """Corrupt an image (height, width, 3); the same arguments give the same result.

    Parameters
    ----------
    pixels
        Red, green and blue from 0 to 255, at least 32 pixels in both directions.
    corruption
        One of `CORRUPTIONS` or `EXTRA_CORRUPTIONS`.
    severity
        Strength from 1 to 5.
    seed
        Seed of the noise, from 0 to 2**32 - 1.
    parameters
        The published set whose strengths are used: "cifar" (made for 32 pixels), "tiny" (64) or
        "imagenet" (224). "auto" chooses the nearest size. Spatter always uses those of ImageNet-C.

    Examples
    --------
    >>> grey = np.full((32, 40, 3), 128, dtype=np.uint8)
    >>> corrupt_image(grey, "gaussian_noise", 5, seed=0).shape
    (32, 40, 3)
    """
    check_corruptions([corruption])
    check_count("corrupt_image", "severity", severity, at_most=MOST_SEVERE)
    check_count("corrupt_image", "seed", seed, at_least=0, at_most=2**32 - 1)
    check_choice("corrupt_image", "parameters", parameters, PARAMETERS)
    _check_pixels(pixels)
    chosen = usual_parameters(min(pixels.shape[:2])) if parameters == "auto" else parameters
    values = small_values(chosen, corruption, severity)
    if values is not None:
        from attakit.stream.small_corruptions import corrupt_small  # noqa: PLC0415, slow to import

        import_corruptions()  # for its frost images
        return corrupt_small(pixels, corruption, values, seed=seed)
    settings: dict[str, Any] = {"seed": seed} if corruption in _OWN_GENERATOR else {}
    library = import_corruptions()
    with _seeded_numpy(seed):
        corrupted = library.corrupt(
            pixels, corruption_name=corruption, severity=severity, **settings
        )
    return np.asarray(corrupted, dtype=np.uint8)


def check_corruptions(names: Sequence[str]) -> None:
    """Raise `UnknownName`, with the closest known name, for an unknown corruption."""
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
    """Let NumPy's global generator depend on the seed inside the block, then restore it."""
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
