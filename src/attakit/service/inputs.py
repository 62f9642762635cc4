"""Turn the inputs of a request into tensors for the model and into bytes for the storage."""

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
from attakit.service.images import FORMATS, open_image, to_png
from attakit.service.texts import TextReader
from attakit.settings.service import InputTable
from attakit.stream.decode import DAMAGE, explain_damage, read_pixels

_PIXELS = 20_000_000
_TOGETHER = 10  # the images of one request may have this many times the pixels of one image
_LARGE = 1_000_000  # pixels; decoding a larger image takes tens of megabytes
_LARGE_AT_ONCE = 4


class Inputs:
    """A reader for the images, arrays or texts that the settings describe.

    Parameters
    ----------
    table
        The description of an input: an image with size and normalisation, an array with shape, or
        a text with its tokenizer.
    pixels
        The largest number of pixels of an image. All images of a request together may have ten
        times as many. Larger ones are rejected before they are decoded.

    Examples
    --------
    >>> inputs = Inputs(InputTable(kind="array", shape=(2,)))
    >>> content = inputs.encode(inputs.read_array([0.5, 2]))
    >>> inputs.decode(content)
    tensor([0.5000, 2.0000])
    """

    def __init__(self, table: InputTable, *, pixels: int = _PIXELS) -> None:
        _check_table(table)
        self.table = table
        self.pixels = pixels
        deviation = np.asarray(table.std[: table.channels], dtype=np.float32)
        self._scale = 1 / (255 * deviation)
        self._offset = np.asarray(table.mean[: table.channels], dtype=np.float32) / deviation
        self._large_images = Semaphore(_LARGE_AT_ONCE)
        self._texts = TextReader(table) if table.kind == "text" else None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one input."""
        if self.table.kind == "array":
            return tuple(self.table.shape)
        if self.table.kind == "text":
            return (self.table.length,)
        return (self.table.channels, self.table.size, self.table.size)

    def decode(self, content: bytes) -> Tensor:
        """Return the tensor of an image file, of a text, or of an array that `encode` wrote."""
        if self.table.kind == "array":
            return self._load_array(content)
        if self.table.kind == "text":
            return self.read_texts([content.decode()])[0]
        return self.read_image(content)

    def read_image(self, content: bytes) -> Tensor:
        """Decode, scale and normalise an image file in memory: (channels, size, size)."""
        self._check_kind("image")
        pixels = self._pixels(content, self.table.size, grey=self.table.channels == 1)
        return torch.from_numpy(pixels * self._scale - self._offset).permute(2, 0, 1)

    def read_images(self, contents: Sequence[bytes]) -> list[Tensor]:
        """Decode the image files of one request."""
        if self.table.kind == "image" and len(contents) > _TOGETHER:
            self._check_together(contents)
        return [self.read_image(content) for content in contents]

    def read_array(self, numbers: object) -> Tensor:
        """Turn nested lists into a tensor, and check its shape and that its numbers are finite."""
        self._check_kind("array")
        return self._checked(_as_numbers(numbers))

    def read_texts(self, texts: Sequence[object]) -> list[Tensor]:
        """Turn the texts of one request into rows of token ids."""
        self._check_kind("text")
        assert self._texts is not None
        return list(self._texts.read(texts))

    def read_stored_array(self, content: bytes) -> NDArray[np.float32]:
        """Return the numbers of an array that `encode` wrote, to show them to people."""
        return self._load_array(content).numpy()

    def blank(self, count: int) -> Tensor:
        """Return a batch of empty inputs, to test a model with."""
        kind = torch.int64 if self.table.kind == "text" else torch.float32
        return torch.zeros(count, *self.shape, dtype=kind)

    def stack(self, inputs: Sequence[Tensor]) -> Tensor:
        """Stack inputs into a batch; images with channels last, which is faster."""
        batch = torch.stack(list(inputs))
        if self.table.kind == "image":
            return batch.contiguous(memory_format=torch.channels_last)
        return batch

    def encode(self, array: Tensor) -> bytes:
        """Return an array as the bytes of an .npy file."""
        file = BytesIO()
        np.save(file, array.numpy(), allow_pickle=False)
        return file.getvalue()

    def picture(self, content: bytes) -> bytes | None:
        """Return a PNG file to show to people; None if inputs are not images.

        It is made from the decoded pixels, so a browser never gets anything else from the upload.
        """
        if self.table.kind != "image":
            return None
        return to_png(Image.fromarray(self._pixels(content, None)))

    def _check_kind(self, sent: str) -> None:
        kind = self.table.kind
        if kind != sent:
            how = "files, or JSON with 'images'" if kind == "image" else f"JSON with '{kind}s'"
            raise StreamError(f"This model takes {kind}s, not {sent}s. Send {how}.")

    def _pixels(self, content: bytes, size: int | None, *, grey: bool = False) -> NDArray[np.uint8]:
        with _as_stream_error(), open_image(content, self.pixels) as image:
            large = image.width * image.height > _LARGE
            with self._large_images if large else nullcontext():  # many at once fill the memory
                return read_pixels(image, size, grey=grey)

    def _check_together(self, contents: Sequence[bytes]) -> None:
        claimed = 0
        for content in contents:
            with _as_stream_error(), open_image(content, self.pixels) as image:
                claimed += image.width * image.height
        if claimed > _TOGETHER * self.pixels:
            raise StreamError(
                f"The images of the request have {claimed} pixels in total, and "
                f"at most {_TOGETHER * self.pixels} are allowed. Send fewer images at once."
            )

    def _load_array(self, content: bytes) -> Tensor:
        try:
            array = np.load(BytesIO(content), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise StreamError("The array is damaged. Save it again.") from error
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
def _as_stream_error() -> Iterator[None]:
    """Turn any error of Pillow about a file into a `StreamError` with one sentence."""
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
        with np.errstate(over="ignore"):  # infinite values are refused later
            array = np.array(numbers)
            if array.dtype.kind not in "iuf":
                raise TypeError
            return array.astype(np.float32)
    except (ValueError, TypeError, OverflowError) as error:
        raise StreamError(
            "An array must be nested lists of numbers, all rows of the same length. Check its "
            "shape."
        ) from error


def _check_table(table: InputTable) -> None:
    if table.kind == "text":
        return
    if table.kind == "array":
        _check_array(table)
        return
    for name, values in (("mean", table.mean), ("std", table.std)):
        if len(values) < table.channels:
            raise SettingError(
                f"Inputs: [input] {name} must hold one number for each of {table.channels} "
                f"channels, got {values}."
            )
    if min(table.std) <= 0:
        raise SettingError(f"Inputs: [input] std must be greater than 0, got {table.std}.")


def _check_array(table: InputTable) -> None:
    if not table.shape:
        raise SettingError(
            'Inputs: [input] kind = "array" needs the shape of one array, got (). '
            "For example, set shape = [4]."
        )
    if table.columns and len(table.columns) != table.shape[-1]:
        raise SettingError(
            f"Inputs: [input] columns must name each of the {table.shape[-1]} numbers of the last "
            f"axis of shape, got {len(table.columns)} names."
        )
