"""Turn what came in a request into a tensor for the model, and into bytes to be kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from threading import Semaphore

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from attakit.errors import SettingError, StreamError
from attakit.service.image_limits import FORMATS, open_image
from attakit.settings.service import InputTable
from attakit.stream.decode import DAMAGE, explain_damage, read_pixels

_PIXELS = 20_000_000
_TOGETHER = 10  # times as many pixels may the images of one request have
_LARGE = 1_000_000  # pixels, from which on an image takes tens of megabytes while it is decoded
_LARGE_AT_ONCE = 4
_SHOWN_SIZE = 1024  # a picture for people is scaled down to this


class Inputs:
    """Reads images and arrays the way the settings say.

    Parameters
    ----------
    table
        What an input is: an image of a size with its normalisation, or an array of a shape.
    pixels
        An image that claims more pixels is refused before it is decoded, and so are images that
        come together and claim ten times as many.

    Examples
    --------
    >>> inputs = Inputs(InputTable(kind="array", shape=(2,)))
    >>> kept = inputs.encode(inputs.read_array([0.5, 2]))
    >>> inputs.decode(kept)
    tensor([0.5000, 2.0000])
    """

    def __init__(self, table: InputTable, *, pixels: int = _PIXELS) -> None:
        _check_table(table)
        self.table = table
        self.pixels = pixels
        deviation = np.asarray(table.std[: table.channels], dtype=np.float32)
        self._scale = 1 / (255 * deviation)
        self._offset = np.asarray(table.mean[: table.channels], dtype=np.float32) / deviation
        self._room = Semaphore(_LARGE_AT_ONCE)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        if self.table.kind == "array":
            return tuple(self.table.shape)
        return (self.table.channels, self.table.size, self.table.size)

    def decode(self, content: bytes) -> Tensor:
        """The tensor of an image file, or of an array that `encode` made."""
        if self.table.kind == "array":
            return self._load_array(content)
        return self.read_image(content)

    def read_image(self, content: bytes) -> Tensor:
        """Decode an image file in memory, scale it and normalise it: (channels, size, size)."""
        if self.table.kind != "image":
            raise StreamError("This model takes arrays, not images. Send JSON with 'arrays'.")
        pixels: NDArray[np.uint8] = self._pixels(content, self.table.size)
        if self.table.channels == 1:
            pixels = np.asarray(Image.fromarray(pixels).convert("L"))[:, :, None]
        return torch.from_numpy(pixels * self._scale - self._offset).permute(2, 0, 1)

    def read_images(self, contents: Sequence[bytes]) -> list[Tensor]:
        """Decode the image files of one request."""
        if self.table.kind == "image" and len(contents) > _TOGETHER:
            self._check_together(contents)
        return [self.read_image(content) for content in contents]

    def read_array(self, numbers: object) -> Tensor:
        """Check nested lists of numbers for their shape, and for numbers that are not finite."""
        if self.table.kind != "array":
            raise StreamError(
                "This model takes images, not arrays. Send files, or JSON with 'images'."
            )
        return self._checked(_as_numbers(numbers))

    def stack(self, inputs: Sequence[Tensor]) -> Tensor:
        """Several inputs as one batch; of images with channels last in memory, which is faster."""
        batch = torch.stack(list(inputs))
        if self.table.kind == "image":
            return batch.contiguous(memory_format=torch.channels_last)
        return batch

    def encode(self, array: Tensor) -> bytes:
        """An array as the bytes of an .npy file."""
        file = BytesIO()
        np.save(file, array.numpy(), allow_pickle=False)
        return file.getvalue()

    def picture(self, content: bytes) -> bytes | None:
        """A PNG file to show to people; None for what is no image.

        It is drawn anew from the pixels, so nothing but pixels of what was sent reaches a browser.
        """
        if self.table.kind != "image":
            return None
        image = Image.fromarray(self._pixels(content, None))
        image.thumbnail((_SHOWN_SIZE, _SHOWN_SIZE))
        file = BytesIO()
        image.save(file, "PNG")
        return file.getvalue()

    def _pixels(self, content: bytes, size: int | None) -> NDArray[np.uint8]:
        with _telling(), open_image(content, self.pixels) as image:
            large = image.width * image.height > _LARGE
            with self._room if large else nullcontext():  # so that many at once fit into memory
                return read_pixels(image, size)

    def _check_together(self, contents: Sequence[bytes]) -> None:
        claimed = 0
        for content in contents:
            with _telling(), open_image(content, self.pixels) as image:
                claimed += image.width * image.height
        if claimed > _TOGETHER * self.pixels:
            raise StreamError(
                f"The images of the request have {claimed} pixels together, and "
                f"{_TOGETHER * self.pixels} are allowed. Send fewer at once."
            )

    def _load_array(self, content: bytes) -> Tensor:
        try:
            array = np.load(BytesIO(content), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise StreamError("A kept array is damaged. Send the sample again.") from error
        return self._checked(_as_numbers(array))

    def _checked(self, array: NDArray[np.float32]) -> Tensor:
        if array.shape != self.shape:
            raise StreamError(
                f"An array has shape {array.shape}; this model takes {self.shape}. Reshape it."
            )
        if not np.isfinite(array).all():
            raise StreamError(
                "An array holds numbers that are not finite (or too large for 32 bits). "
                "Replace them before sending."
            )
        return torch.from_numpy(array)


@contextmanager
def _telling() -> Iterator[None]:
    """Whatever Pillow raises about a file becomes one sentence."""
    try:
        yield
    except UnidentifiedImageError as error:
        raise StreamError(
            f"An image cannot be read: it is none of {', '.join(FORMATS)}. Convert it first."
        ) from error
    except DAMAGE as error:
        raise StreamError(
            f"An image cannot be read: {explain_damage(error)}. Repair it, or leave it out."
        ) from error


def _as_numbers(numbers: object) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # what becomes infinite is refused as such
            array = np.array(numbers)
            if array.dtype.kind not in "iuf":
                raise TypeError
            return array.astype(np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise StreamError(
            "An array must be nested lists of numbers, all rows equally long. Check its shape."
        ) from error


def _check_table(table: InputTable) -> None:
    if table.kind == "array":
        if not table.shape:
            raise SettingError(
                'Inputs: [input] kind = "array" needs the shape of one array, got (). '
                "Say, for instance, shape = [4]."
            )
        return
    for name, values in (("mean", table.mean), ("std", table.std)):
        if len(values) < table.channels:
            raise SettingError(
                f"Inputs: [input] {name} must hold one number for each of {table.channels} "
                f"channels, got {values}."
            )
    if min(table.std) <= 0:
        raise SettingError(f"Inputs: [input] std must be greater than 0, got {table.std}.")
