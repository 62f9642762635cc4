"""Small pictures of inputs, as text that a web page can show."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import torch
from PIL import Image
from torch import Tensor

PICTURE_SIDE = 64  # pixels
_SMALLEST_SIDE = 4  # anything thinner is not a picture


def is_picture(inputs: Tensor) -> bool:
    """True if a batch of inputs can be shown: (batch, 1 or 3, height, width).

    >>> is_picture(torch.zeros(2, 3, 32, 32)), is_picture(torch.zeros(2, 16))
    (True, False)
    """
    return (
        inputs.ndim == 4
        and inputs.shape[1] in (1, 3)
        and min(inputs.shape[2:]) >= _SMALLEST_SIDE
        and not inputs.is_complex()
    )


def encode_picture(
    pixels: Tensor, mean: Sequence[float] | None = None, std: Sequence[float] | None = None
) -> str:
    """Encode one (channels, height, width) input as a base64 PNG of at most 64 pixels a side.

    Parameters
    ----------
    pixels
        The input as the model sees it. Bytes are used unchanged.
    mean, std
        The normalisation of the input, per channel. Without them the darkest pixel becomes black
        and the brightest white.
    """
    bright = pixels.detach().cpu()
    if bright.dtype != torch.uint8:
        bright = _brightness(bright.float().nan_to_num(0.0, 0.0, 0.0), mean, std).mul(255)
    array = bright.round().to(torch.uint8).permute(1, 2, 0).numpy()
    image = Image.fromarray(array.squeeze(-1) if array.shape[-1] == 1 else array)
    image.thumbnail((PICTURE_SIDE, PICTURE_SIDE), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode("ascii")


def _brightness(
    pixels: Tensor, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Tensor:
    """Scale pixels to numbers from 0 to 1."""
    if mean is not None and std is not None:
        shape = (-1, 1, 1)
        scaled = pixels * torch.tensor(std).reshape(shape) + torch.tensor(mean).reshape(shape)
        return scaled.clamp(0, 1)
    low, high = pixels.min(), pixels.max()
    return (pixels - low) / (high - low) if high > low else torch.zeros_like(pixels)
