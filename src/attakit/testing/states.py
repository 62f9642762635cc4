"""Saved states: written to a file and read back, and compared bit for bit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attakit.errors import StateError
from attakit.store.tensor_file import load_state, save_state


def same_state(one: Any, other: Any) -> bool:
    """True if two nested states are equal, tensors bit for bit."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.equal(one, other)
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_state(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same_state, one, other))
    return bool(one == other)


def saved_and_loaded(state: dict[str, Any]) -> Any:
    """Return a state as a resumed run gets it."""
    try:
        with TemporaryDirectory() as folder:
            save_state(Path(folder, "state.safetensors"), state)
            return load_state(Path(folder, "state.safetensors"))
    except StateError as error:
        raise AssertionError(
            "state_dict holds more than tensors, numbers, strings, lists and dictionaries"
        ) from error
