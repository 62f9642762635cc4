"""Normalisation layers: their parameters, and the statistics they use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import MethodType
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

NormPolicy = Literal["frozen", "batch", "running", "blended"]
NORM_POLICIES: tuple[NormPolicy, ...] = ("frozen", "batch", "running", "blended")

# The policies of a method that follows the stream without moving the stored statistics.
StreamNorm = Literal["batch", "blended"]
STREAM_NORMS: tuple[StreamNorm, ...] = ("batch", "blended")

NORM_LAYERS: tuple[type[nn.Module], ...] = (
    _BatchNorm,
    _InstanceNorm,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
)

# Attribute of a mixing layer for the weight of the stored statistics.
_SOURCE_SAMPLES = "_attakit_source_samples"

# Model libraries have their own norm layers (LlamaRMSNorm, EvoNorm2dS0), known by name.
_NORM_NAME = re.compile(r"Norm(Act)?(\d\w*)?$")


def is_norm_layer(layer: nn.Module) -> bool:
    """True if a layer normalises, by its type or its name.

    Examples
    --------
    >>> is_norm_layer(nn.GroupNorm(1, 4)), is_norm_layer(nn.Linear(4, 4))
    (True, False)
    """
    return isinstance(layer, NORM_LAYERS) or bool(_NORM_NAME.search(type(layer).__name__))


def norm_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return scales and shifts of all normalisation layers, each once, in model order.

    Examples
    --------
    >>> len(norm_parameters(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.LayerNorm(3))))
    4
    """
    layers = (layer for layer in model.modules() if is_norm_layer(layer))
    found = [parameter for layer in layers for parameter in layer.parameters(recurse=False)]
    return list(dict.fromkeys(found))


def use_batch_statistics(model: nn.Module, *, source_samples: float = 0.0) -> None:
    """Make every batch-norm layer of the model normalise with the current batch, in place.

    The stored statistics stay unchanged. They are used if a batch has a single value per channel,
    which has no variance. Layers keep their class, names and activations, so saved weights fit
    before and after.

    Parameters
    ----------
    model
        The model, changed in place.
    source_samples
        N of Schneider et al. 2020: mean and variance of a batch of n samples are N/(N+n) · stored +
        n/(N+n) · batch. Zero ignores the stored ones. A mixture also works for single values; no
        gradients flow through it. The batch's variance is unbiased, like the stored one.

    Examples
    --------
    >>> import torch
    >>> layer = nn.BatchNorm1d(1).eval()
    >>> use_batch_statistics(layer)
    >>> layer(torch.tensor([[10.0], [12.0]])).detach().round().flatten().tolist()
    [-1.0, 1.0]
    """
    for layer in batch_norm_layers(model):
        layer.__dict__[_SOURCE_SAMPLES] = source_samples
        _replace_forward(layer, _forward_on_mixture if source_samples else _forward_on_batch)


def use_stored_statistics(model: nn.Module) -> None:
    """Undo `use_batch_statistics`: every batch-norm layer uses its stored statistics again.

    Examples
    --------
    >>> import torch
    >>> layer = nn.BatchNorm1d(1).eval()
    >>> use_batch_statistics(layer)
    >>> use_stored_statistics(layer)
    >>> layer(torch.tensor([[10.0], [12.0]])).detach().round().flatten().tolist()
    [10.0, 12.0]
    """
    for layer in batch_norm_layers(model):
        forward = getattr(layer.__dict__.get("forward"), "__func__", None)
        if forward in (_forward_on_batch, _forward_on_mixture):
            del layer.__dict__["forward"]


def uses_batch_statistics(model: nn.Module) -> bool:
    """True if a model's answer to one sample depends on the others in its batch.

    Examples
    --------
    >>> layer = nn.BatchNorm1d(1).eval()
    >>> use_batch_statistics(layer)
    >>> uses_batch_statistics(layer), uses_batch_statistics(nn.LayerNorm(1))
    (True, False)
    """
    return any(
        "forward" in layer.__dict__ or layer.running_mean is None
        for layer in batch_norm_layers(model)
    )


@contextmanager
def moving_statistics(model: nn.Module, *, momentum: float | None = None) -> Iterator[None]:
    """Use batch statistics inside the block, and update the stored ones.

    A batch with a single value per channel is normalised with the stored statistics, and updates
    nothing. Other layers (dropout!) are not changed.

    Parameters
    ----------
    model
        The model, changed in place. Afterwards everything but the stored statistics is restored.
    momentum
        Share of a batch in the stored statistics; by default each layer's own.

    Examples
    --------
    >>> import torch
    >>> layer = nn.BatchNorm1d(1).eval()
    >>> with moving_statistics(layer):
    ...     _ = layer(torch.tensor([[10.0], [12.0]]))
    >>> round(float(layer.running_mean), 1), layer.training
    (1.1, False)
    """
    before = [(layer, layer.training, layer.momentum) for layer in batch_norm_layers(model)]
    with _forwarding(model, _forward_and_move):
        for layer, _, own in before:
            layer.training = True
            layer.momentum = own if momentum is None else momentum
        try:
            yield
        finally:
            for layer, training, own in before:
                layer.training, layer.momentum = training, own


@contextmanager
def robust_statistics(model: nn.Module, share: float) -> Iterator[None]:
    """Update the stored batch-norm statistics inside the block, and normalise with them.

    This is RoTTA's robust batch normalisation (Yuan, Xie and Li, CVPR 2023, section 3.2). First μ ←
    (1 - α)·μ + α·μ_batch, and the same for σ². Then the batch is normalised with μ and σ².
    Gradients flow through the share of the batch. Layers without stored statistics use those of the
    batch.

    Parameters
    ----------
    model
        The model, changed in place. Afterwards everything but the stored statistics is restored.
    share
        α: share of a batch in the statistics.

    Examples
    --------
    >>> import torch
    >>> layer = nn.BatchNorm1d(1, eps=0).eval()
    >>> with robust_statistics(layer, share=0.5):
    ...     layer(torch.tensor([[0.0], [2.0]])).detach().flatten().tolist()
    [-0.5, 1.5]
    >>> layer.running_mean.item(), layer.running_var.item()
    (0.5, 1.0)
    """
    with _forwarding(model, partial(_forward_robustly, share=share)):
        yield


@contextmanager
def _forwarding(model: nn.Module, forward: object) -> Iterator[None]:
    """Give batch-norm layers another forward inside the block."""
    before = [(layer, layer.__dict__.get("forward")) for layer in batch_norm_layers(model)]
    for layer, _ in before:
        _replace_forward(layer, forward)
    try:
        yield
    finally:
        for layer, own in before:
            del layer.__dict__["forward"]
            if own is not None:
                layer.__dict__["forward"] = own


def batch_norm_layers(model: nn.Module) -> list[_BatchNorm]:
    """All batch-norm layers of a model, in model order."""
    return [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]


def _replace_forward(layer: _BatchNorm, forward: object) -> None:
    """Give one layer another forward.

    A layer of another class would lose what subclasses add, such as the activation inside timm's
    BatchNormAct2d. A bound method follows its layer through deepcopy.
    """
    layer.__dict__["forward"] = MethodType(forward, layer)  # type: ignore[arg-type]


def _forward_on_batch(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    if _has_no_variance(inputs):
        return _forward_in_evaluation(layer, inputs)
    # Without stored statistics a batch-norm layer in evaluation mode uses those of the batch.
    return evaluate_with(layer, inputs, None, None)


def _forward_on_mixture(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    if layer.running_mean is None or layer.running_var is None or inputs.numel() == 0:
        return _forward_in_evaluation(layer, inputs)
    # As a share, so that infinitely many samples mean the stored statistics alone.
    share = len(inputs) / (layer.__dict__[_SOURCE_SAMPLES] + len(inputs))
    per_channel = [axis for axis in range(inputs.ndim) if axis != 1]
    values = inputs.detach().to(layer.running_mean.dtype)  # autocasting may have shortened them
    # The stored variance is an unbiased estimate, so the batch's must be one too.
    lost = 0 if _has_no_variance(inputs) else 1
    mean, variance = values.mean(per_channel), values.var(per_channel, correction=lost)
    return evaluate_with(
        layer, inputs, layer.running_mean.lerp(mean, share), layer.running_var.lerp(variance, share)
    )


def moments(values: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return mean and variance over some axes. `torch.var_mean` is ten times slower on a CPU.

    >>> import torch
    >>> [each.item() for each in moments(torch.tensor([1.0, 3.0]), (0,))]
    [2.0, 1.0]
    """
    mean = values.mean(axes, keepdim=True)
    # A sum over axes of length 1: the ONNX exporter does not know squeeze with several axes.
    return mean.sum(axes), (values - mean).square_().mean(axes)


def evaluate_with(
    layer: _BatchNorm, inputs: Tensor, mean: Tensor | None, variance: Tensor | None
) -> Tensor:
    """Run a layer in evaluation mode with other statistics than its stored ones."""
    stored = layer.running_mean, layer.running_var
    layer.running_mean, layer.running_var = mean, variance
    try:
        return _forward_in_evaluation(layer, inputs)
    finally:
        layer.running_mean, layer.running_var = stored


def _forward_and_move(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    if _has_no_variance(inputs):
        return _forward_in_evaluation(layer, inputs)
    return _own_forward(layer, inputs)


def _forward_robustly(layer: _BatchNorm, inputs: Tensor, *, share: float) -> Tensor:
    stored = layer.running_mean, layer.running_var
    if stored[0] is None or stored[1] is None or inputs.numel() == 0:
        return _forward_in_evaluation(layer, inputs)
    axes = [axis for axis in range(inputs.ndim) if axis != 1]
    mean = stored[0].lerp(inputs.mean(axes), share)
    variance = stored[1].lerp(inputs.var(axes, correction=0), share)
    stored[0].copy_(mean.detach())
    stored[1].copy_(variance.detach())
    per_channel = (1, -1, *[1] * (inputs.ndim - 2))
    normal = (inputs - mean.view(per_channel)) / (variance + layer.eps).sqrt().view(per_channel)
    # The layer only adds its scale, its shift and what subclasses add.
    nothing = torch.zeros_like(stored[0])
    return evaluate_with(layer, normal, nothing, nothing + (1 - layer.eps))


def _forward_in_evaluation(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    training, layer.training = layer.training, False
    try:
        return _own_forward(layer, inputs)
    finally:
        layer.training = training


def _own_forward(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    outputs: Tensor = type(layer).forward(layer, inputs)
    return outputs


def _has_no_variance(inputs: Tensor) -> bool:
    """True if there is at most one value per channel."""
    return inputs.numel() <= inputs.shape[1]
