"""A state in one safetensors file: tensors as they are, everything else in the header.

Reading such a file runs no code, even if it comes from someone else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from attakit.errors import StateError
from attakit.files import atomic_write

_FORMAT = "attakit state 2"
_READABLE = ("attakit state 1", _FORMAT)

_Tensors = dict[str, Tensor]


def save_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a nested state. After a crash the file is the old or the new one, complete on disk.

    Parameters
    ----------
    path
        The file. A missing folder is created.
    state
        Mappings, lists and tuples of tensors, numbers, texts, booleans and None.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_state(Path(folder, "a.safetensors"), {"turn": 3, "at": [torch.ones(1), None]})
    ...     load_state(Path(folder, "a.safetensors"))
    {'turn': 3, 'at': [tensor([1.]), None]}
    """
    tensors: _Tensors = {}
    header = {"format": _FORMAT, "state": json.dumps(_pack(state, tensors))}
    try:
        with atomic_write(path, sync=True) as draft:
            save_file(tensors, draft, metadata=header)
    except (OSError, SafetensorError) as error:
        raise StateError(
            f"The state cannot be saved in {path} ({error}). Free some space or choose another "
            "folder. What was saved before is intact."
        ) from error


def load_state(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read a state that `save_state` wrote."""
    if not path.is_file():
        raise StateError(f"There is no saved state at {path}. Check the path.")
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(path) from error
    if header.get("format") not in _READABLE:
        raise StateError(
            f"{path} was written as {header.get('format', 'something else')!r}; this version "
            f"reads {_FORMAT!r}. Continue with the version that wrote it, or start again."
        )
    try:
        return dict(_unpack(json.loads(header["state"]), tensors))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path) from error


def _pack(value: Any, tensors: _Tensors) -> Any:
    """Return a value as JSON, in which a tensor is a position in the file."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Tensor):
        name = str(len(tensors))
        # A copy, because safetensors refuses tensors that share memory. It has the same strides, if
        # these leave no gaps.
        copied = value.detach().cpu().clone()
        tensors[name] = copied.contiguous()
        # The order in memory decides the order of additions, and a resumed run must have the same.
        return {"tensor": name, "strides": _unusual_strides(copied)}
    if isinstance(value, Mapping):
        # As pairs, because keys may be numbers, which JSON would turn into texts.
        return {"pairs": [[_key(key), _pack(each, tensors)] for key, each in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_pack(each, tensors) for each in value]}
    if isinstance(value, list):
        return [_pack(each, tensors) for each in value]
    raise StateError(
        f"A state holds tensors, numbers, texts, lists, mappings and None, got a "
        f"{type(value).__name__}: {value!r}. Save it as one of these."
    )


def _unpack(packed: Any, tensors: _Tensors) -> Any:
    if isinstance(packed, list):
        return [_unpack(each, tensors) for each in packed]
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        tensor = tensors[packed["tensor"]]
        if packed.get("channels_last"):  # format 1
            return tensor.to(memory_format=torch.channels_last)
        return _with_strides(tensor, packed.get("strides"))
    if "tuple" in packed:
        return tuple(_unpack(each, tensors) for each in packed["tuple"])
    return {key: _unpack(value, tensors) for key, value in packed["pairs"]}


def _key(key: Any) -> int | str:
    if isinstance(key, (int, str)) and not isinstance(key, bool):
        return key
    raise StateError(f"A key of a state must be a text or a whole number, got {key!r}.")


def _with_strides(tensor: Tensor, strides: list[int] | None) -> Tensor:
    if strides is None:
        return tensor
    return torch.empty_strided(
        tensor.shape, strides, dtype=tensor.dtype, device=tensor.device
    ).copy_(tensor)


def _unusual_strides(tensor: Tensor) -> list[int] | None:
    """Return strides, unless they are those of a new tensor.

    `is_contiguous` is not enough: with one channel, several strides count as contiguous.
    """
    usual = torch.empty(tensor.shape, device="meta").stride()
    return None if tensor.stride() == usual else list(tensor.stride())


def _damaged(path: Path) -> StateError:
    return StateError(
        f"{path} is not a saved state, or it is damaged. Restore a copy of it, or start again."
    )
