"""Read tensor files from any source, without running code in them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from attakit.errors import ModelError

PICKLE_ENDINGS = (".pt", ".pth", ".bin", ".ckpt")
_NESTS = ("state_dict", "model", "model_state_dict")
# torch's message if a pickle would build more than tensors.
_UNSAFE = ("unsupported global", "unsupported class")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a file, by name.

    >>> read_tensors(Path("nowhere.safetensors"))
    Traceback (most recent call last):
        ...
    attakit.errors.ModelError: load_weights: there is no file nowhere.safetensors. Check the path.
    It is relative to the current folder.
    """
    if not path.is_file():
        raise ModelError(
            f"load_weights: there is no file {path}. Check the path. It is relative to the current "
            "folder."
        )
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix in PICKLE_ENDINGS:
        return _read_pickle(path)
    raise ModelError(
        f"load_weights: cannot derive the file format from the ending of {path.name!r}. Known "
        f"endings: .safetensors, {', '.join(PICKLE_ENDINGS)}."
    )


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise _unreadable(path, "safetensors", error) from error


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if any(words in str(error).lower() for words in _UNSAFE):
            raise ModelError(
                f"load_weights: {path} holds more than tensors, and opening it could run foreign "
                "code. If you trust it, load it yourself and save only model.state_dict()."
            ) from error
        raise _unreadable(path, "torch", error) from error
    except Exception as error:  # damaged pickles raise almost anything
        raise _unreadable(path, "torch", error) from error
    return _find_state(path, content)


def _find_state(path: Path, content: object) -> dict[str, Tensor]:
    while isinstance(content, Mapping):
        nested = [content[key] for key in _NESTS if isinstance(content.get(key), Mapping)]
        if not nested:
            break
        content = nested[0]
    if isinstance(content, Mapping):
        tensors = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
        if tensors and len(tensors) == len(content):
            return tensors
    raise ModelError(
        f"load_weights: {path} holds no state dict (names with tensors), directly or under "
        f"{' or '.join(_NESTS)}. Save model.state_dict()."
    )


def _unreadable(path: Path, kind: str, error: Exception) -> ModelError:
    first_line = (str(error).splitlines() or [type(error).__name__])[0]
    return ModelError(
        f"load_weights: {path} is not a readable {kind} file ({first_line}). It may be truncated, "
        "a web page saved under this name, or in another format. Download or save it again."
    )
