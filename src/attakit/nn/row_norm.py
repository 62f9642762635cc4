"""Batch norm with separate statistics for every sample, for stored samples.

A sample stored for training was normalised by the statistics of its own time and style. They stay
with it. When weights train, the activations at a batch-norm layer move for all samples alike. Newly
estimated statistics would move with them, so those of the stored samples do too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MethodType

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.nn.norm import evaluate_with, moments

PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)  # a subclass may add an activation
_WITH_ACTIVATION = ("BatchNormAct2d",)  # timm's

_ROWS = "_attakit_rows"
_SMALLEST = 1e-6
_MOST = 10.0  # maximum factor by which a variance may grow or shrink

Pair = tuple[Tensor, Tensor]


def normalise_rows(layer: _BatchNorm, inputs: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Run a layer with one row of statistics per sample.

    Parameters
    ----------
    layer
        The layer. Its scale, shift and activation apply; its stored statistics do not.
    inputs
        A batch of activations.
    mean, variance
        One row per sample, one column per channel.

    Examples
    --------
    >>> layer = torch.nn.BatchNorm1d(1, eps=0.0).eval()
    >>> rows = torch.tensor([[5.0], [7.0]])
    >>> normalise_rows(layer, rows, rows - 1, torch.ones(2, 1)).flatten().tolist()
    [1.0, 1.0]
    """
    added = _activations(layer)
    scale, whole = (variance + layer.eps).rsqrt(), added is not None
    if whole and layer.weight is not None:
        scale = scale * layer.weight
    shift = -mean * scale
    if whole and layer.bias is not None:
        shift = shift + layer.bias
    normal = torch.addcmul(_spread(shift, inputs), inputs, _spread(scale, inputs))
    if added is not None:
        for activation in added:
            normal = activation(normal)
        return normal
    # Run another subclass on neutral statistics, for whatever it adds.
    assert layer.running_mean is not None
    neutral = torch.zeros_like(layer.running_mean), torch.ones_like(layer.running_mean)
    return evaluate_with(layer, normal, neutral[0], neutral[1] - layer.eps)


def _activations(layer: _BatchNorm) -> Sequence[nn.Module] | None:
    """Return what a layer runs after batch norm; None if that is not known.

    timm joins batch norm, dropout and an activation in one layer. A pass on neutral statistics for
    the activation alone would take as long as batch norm.
    """
    if type(layer) in PLAIN:
        return ()
    children = dict(layer.named_children())
    if type(layer).__name__ in _WITH_ACTIVATION and list(children) == ["drop", "act"]:
        return tuple(children.values())
    return None


def _spread(rows: Tensor, inputs: Tensor) -> Tensor:
    """Reshape rows per sample and channel so that they apply to every position."""
    return rows.to(inputs.dtype).view(*rows.shape, *[1] * (inputs.ndim - 2))


@dataclass
class LayerRows:
    """Statistics of stored samples at one layer.

    Parameters
    ----------
    mean, variance
        One row per sample: the statistics that normalised it.
    usual
        Mean and mean square of the channels of each sample under the weights of the statistics.
        None if these are the current weights.
    found
        The same under the current weights, after a pass.
    moved
        How far the mean has moved, and the ratio of the variances, after a pass.
    """

    mean: Tensor
    variance: Tensor
    usual: Pair | None = None
    found: Pair | None = field(default=None, init=False)
    moved: Pair | None = field(default=None, init=False)


@contextmanager
def normalised_by(layers: Sequence[_BatchNorm], statistics: Sequence[LayerRows]) -> Iterator[None]:
    """Normalise stored samples by their own statistics inside the block."""
    before = [layer.__dict__.get("forward") for layer in layers]
    for layer, rows in zip(layers, statistics, strict=True):
        layer.__dict__[_ROWS] = rows
        layer.__dict__["forward"] = MethodType(_forward_rows, layer)
    try:
        yield
    finally:
        for layer, forward in zip(layers, before, strict=True):
            del layer.__dict__[_ROWS], layer.__dict__["forward"]
            if forward is not None:
                layer.__dict__["forward"] = forward


def _forward_rows(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    rows: LayerRows = layer.__dict__[_ROWS]
    axes = tuple(range(2, inputs.ndim))
    values = inputs.detach()
    mean, variance = moments(values, axes) if axes else (values, torch.zeros_like(values))
    rows.found = mean, variance + mean.square()
    if rows.usual is None:
        return normalise_rows(layer, inputs, rows.mean, rows.variance)
    rows.moved = _moved(rows.usual, rows.found)
    return normalise_rows(layer, inputs, rows.mean + rows.moved[0], rows.variance * rows.moved[1])


def _moved(before: Pair, after: Pair) -> Pair:
    """Return the distance of means and ratio of variances of two passes over the same samples."""
    (mean, square), (new_mean, new_square) = (
        (each[0].mean(dim=0), each[1].mean(dim=0)) for each in (before, after)
    )
    variance = (square - mean.square()).clamp(min=_SMALLEST)
    ratio = (new_square - new_mean.square()).clamp(min=_SMALLEST) / variance
    return new_mean - mean, ratio.clamp(1 / _MOST, _MOST)
