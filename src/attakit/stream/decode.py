"""Turn any image file into RGB bytes of a fixed size."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from attakit.errors import StreamError

# Exceptions that Pillow raises on damaged files, depending on format and damage.
DAMAGE = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    TypeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,
)
_SKIP = "or leave all such files out with skip_corrupt=True"
_SIXTEEN_TO_EIGHT_BITS = 257  # 65535 / 255


def decode_image(
    path: Path, size: int | None, *, who: str = "ImageFolders", remedy: str = _SKIP
) -> NDArray[np.uint8]:
    """Read an image as a read-only array (size, size, 3).

    Without a size it is (height, width, 3) of the file. `who` begins the error about a damaged
    file. `remedy` is an alternative to repairing or deleting it.

    Grey becomes RGB, transparency becomes white, and 16 bits become 8. The orientation in the
    metadata is applied, and the aspect ratio is not kept.
    """
    try:
        with Image.open(path) as image:
            pixels = read_pixels(image, size)
    except DAMAGE as error:
        raise StreamError(
            f"{who}: cannot read {path} as an image: {explain_damage(error)}. Repair or delete the "
            f"file, {remedy}."
        ) from error
    pixels.flags.writeable = False
    return pixels


def explain_damage(error: Exception) -> str:
    """Describe a `DAMAGE` error of an image, as the end of a sentence.

    >>> explain_damage(EOFError())
    'it is damaged'
    """
    if isinstance(error, (Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return "it has too many pixels"
    if "MAX_TEXT" in str(error):  # Pillow names its own settings
        return "the texts in its metadata are too long"
    return str(error).rstrip(". ") or "it is damaged"


def read_pixels(image: Image.Image, size: int | None, *, grey: bool = False) -> NDArray[np.uint8]:
    """Decode an opened image like `decode_image`; raises one of `DAMAGE`. `grey` is one channel.

    >>> read_pixels(Image.new("RGB", (9, 5)), 4).shape
    (4, 4, 3)
    """
    image = ImageOps.exif_transpose(image)
    if not grey:
        return _scaled(_as_rgb(image), size)
    if image.mode == "L" and not image.has_transparency_data:
        return _scaled(image, size)[:, :, None]  # the same as through RGB, but faster
    pixels = Image.fromarray(_scaled(_as_rgb(image), size))
    return np.array(pixels.convert("L"))[:, :, None]


def resize_pixels(pixels: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Scale an image (height, width, 3) to (size, size, 3), like `decode_image`.

    >>> resize_pixels(np.zeros((32, 32, 3), dtype=np.uint8), 8).shape
    (8, 8, 3)
    """
    return _scaled(Image.fromarray(pixels), size)


def _scaled(image: Image.Image, size: int | None) -> NDArray[np.uint8]:
    if size is not None and image.size != (size, size):
        image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.array(image, dtype=np.uint8)


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "F":
        raise ValueError("its pixels are floating-point numbers with an unknown range")
    if image.mode.startswith("I"):
        grey = np.clip(np.asarray(image, dtype=np.int64), 0, 65535) // _SIXTEEN_TO_EIGHT_BITS
        return Image.fromarray(grey.astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        opaque = Image.new("RGBA", image.size, "white")
        opaque.alpha_composite(image.convert("RGBA"))
        return opaque.convert("RGB")
    return image.convert("RGB")
