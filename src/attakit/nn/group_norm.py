"""Keep group norm from crashing the process on a CPU.

In torch 2.13 the backward pass of group norm crashes with a segmentation fault on a CPU if the
input is in channels-last order and needs no gradient. The input of a model's first group norm is
like that if only norm layers, or layers after it, train.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


@contextmanager
def safe_group_norm(model: nn.Module) -> Iterator[None]:
    """Give group-norm layers inputs with a layout that torch can differentiate.

    Only an input without a gradient is copied, and only while gradients are recorded: in practice
    that of one layer. No hook stays on the layers.

    >>> model = nn.GroupNorm(1, 2)
    >>> with safe_group_norm(model):
    ...     model(torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last)).sum().backward()
    >>> model.bias.grad.tolist()
    [9.0, 9.0]
    """
    layers = model.modules() if torch.is_grad_enabled() else ()
    hooks = [
        layer.register_forward_pre_hook(_contiguous)
        for layer in layers
        if isinstance(layer, nn.GroupNorm)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _contiguous(_layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    at_risk = (each for each in given if isinstance(each, Tensor) and not each.requires_grad)
    if any(tensor.device.type == "cpu" for tensor in at_risk):
        return tuple(each.contiguous() if isinstance(each, Tensor) else each for each in given)
    return given
