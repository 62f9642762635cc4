"""Devices: a GPU if there is one, and the memory layout that is fast there."""

from __future__ import annotations

import re
from typing import TypeVar

import torch
from torch import Tensor, nn

from attakit.errors import SettingError

_Module = TypeVar("_Module", bound=nn.Module)
_NAME = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


def available_devices() -> list[str]:
    """Return the names of this machine's devices, the choice of "auto" first.

    Examples
    --------
    >>> available_devices()[-1]
    'cpu'
    """
    cards = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    apple = ["mps"] if torch.backends.mps.is_available() else []
    return [f"cuda:{card}" for card in cards] + apple + ["cpu"]


def choose_device(name: str = "auto") -> torch.device:
    """Return the device with this name; "auto" means CUDA, else MPS, else the CPU.

    Examples
    --------
    >>> choose_device("cpu")
    device(type='cpu')
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SettingError(f"device must be auto, cpu, cuda, cuda:N or mps, got {name!r}.")
    there = available_devices()
    wanted = {"auto": there[0], "cuda": "cuda:0"}.get(name, name)
    if wanted not in there:
        raise SettingError(
            f"device {name!r} is not available here. Available: {', '.join(there)}. "
            f'Choose one of these, or "auto".'
        )
    return torch.device(wanted)


def place(inputs: Tensor, device: torch.device) -> Tensor:
    """Move a batch to a device, images (four dimensions, floats) in channels-last order.

    A batch that is already in place is returned unchanged, so placing twice costs nothing.

    Examples
    --------
    >>> place(torch.zeros(2, 3, 8, 8), torch.device("cpu")).stride()
    (192, 1, 24, 3)
    """
    # Not waiting is safe only towards a GPU: the other way, numbers could be read too early.
    ahead = device.type == "cuda"
    if inputs.ndim == 4 and inputs.is_floating_point():
        return inputs.to(device, memory_format=torch.channels_last, non_blocking=ahead)
    return inputs.to(device, non_blocking=ahead)


def prepare(module: _Module, device: torch.device) -> _Module:
    """Move a module to a device, its convolutions in channels-last order, in place.

    Examples
    --------
    >>> prepare(nn.Conv2d(2, 2, 3), torch.device("cpu")).weight.stride()
    (18, 1, 6, 2)
    """
    module.to(device)
    # One by one: torch refuses to convert a whole model with weights of five dimensions.
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.ndim == 4 and tensor.is_floating_point():
            tensor.data = tensor.data.contiguous(memory_format=torch.channels_last)
    return module
