"""Turn a user's tensors and NumPy arrays into model inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from attakit.errors import StreamError

ArrayLike = Tensor | np.ndarray[Any, Any]

_CHECKED_AT_ONCE = 4096  # rows, so that checking a memory-mapped file needs little memory


def as_inputs(array: ArrayLike) -> Tensor:
    """Make a tensor for a model. Double becomes single precision; other types stay.

    >>> as_inputs(np.zeros((2, 3))).dtype
    torch.float32
    >>> as_inputs(np.zeros((2, 3), dtype=np.int64)).dtype
    torch.int64
    """
    if isinstance(array, np.ndarray):
        # The copy avoids torch's warning about read-only memory, and sharing it.
        array = torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
    array = array.detach()
    return array.float() if array.dtype == torch.float64 else array


def check_array(who: str, array: object) -> None:
    """Raise `StreamError` unless this is a tensor or array of numbers with rows."""
    if not isinstance(array, Tensor | np.ndarray):
        raise StreamError(
            f"{who}: inputs must be a torch tensor or a NumPy array, got {type(array).__name__}."
        )
    if isinstance(array, np.ndarray) and array.dtype.kind not in "fiub":
        raise StreamError(
            f"{who}: inputs must be numbers, got an array of type {array.dtype}. "
            f"Convert it, for instance with array.astype('float32')."
        )
    if array.ndim == 0:
        raise StreamError(
            f"{who}: inputs need a first dimension that counts the samples, got a single number."
        )


def first_bad_row(array: ArrayLike) -> int | None:
    """Return the position of the first row with NaN or infinity.

    >>> first_bad_row(torch.tensor([[0.0], [float("nan")]]))
    1
    """
    for start in range(0, len(array), _CHECKED_AT_ONCE):
        chunk = as_inputs(array[start : start + _CHECKED_AT_ONCE])
        if not chunk.is_floating_point():
            return None
        good = torch.isfinite(chunk).flatten(1).all(1) if chunk.ndim > 1 else torch.isfinite(chunk)
        if not bool(good.all()):
            return start + int((~good).nonzero()[0])
    return None
