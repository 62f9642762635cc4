"""Normalisation layers: which parameters they have, and which statistics they use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

NormPolicy = Literal["frozen", "batch", "running"]
NORM_POLICIES: tuple[NormPolicy, ...] = ("frozen", "batch", "running")


class BatchStatistics(nn.Module):
    """A batch-norm layer that always normalises with the statistics of the current batch.

    It keeps the stored statistics and falls back on them where a batch has a single value per
    channel, whose variance says nothing. Parameter and buffer names stay those of the layer it
    replaces, so saved weights fit both.
    """

    def __init__(self, layer: _BatchNorm) -> None:
        super().__init__()
        self.weight = layer.weight
        self.bias = layer.bias
        self.eps = layer.eps
        self.running_mean: Tensor | None
        self.running_var: Tensor | None
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(layer, name))

    def forward(self, inputs: Tensor) -> Tensor:
        values_per_channel = inputs.numel() // inputs.shape[1]
        if values_per_channel == 1 and self.running_mean is not None:
            return F.batch_norm(
                inputs, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return F.batch_norm(inputs, None, None, self.weight, self.bias, training=True, eps=self.eps)


NORM_LAYERS: tuple[type[nn.Module], ...] = (
    _BatchNorm,
    _InstanceNorm,
    BatchStatistics,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.LocalResponseNorm,
    nn.RMSNorm,
)


def norm_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Scales and shifts of all normalisation layers, in model order.

    >>> len(norm_parameters(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.LayerNorm(3))))
    4
    """
    return [
        parameter
        for layer in model.modules()
        if isinstance(layer, NORM_LAYERS)
        for parameter in layer.parameters(recurse=False)
    ]


def use_batch_statistics(model: nn.Module) -> None:
    """Make every batch-norm layer of the model normalise with the current batch, in place."""
    for parent in list(model.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm):
                setattr(parent, name, BatchStatistics(child))


@contextmanager
def moving_statistics(model: nn.Module) -> Iterator[None]:
    """Inside, batch-norm layers use batch statistics and move their stored ones along."""
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    for layer in layers:
        layer.train()
    try:
        yield
    finally:
        for layer in layers:
            layer.eval()
