"""Blended normalisation: batch-norm statistics mixed from the source's and the stream's."""

from __future__ import annotations

from types import MethodType

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.errors import check_count, check_range
from attakit.nn.norm import batch_norm_layers, evaluate_with

SOURCE_SHARE = 0.6
WINDOW = 100
_VALUES = 6400  # per channel: more make the statistics slower, not better
_SETTLED = 16  # samples before the stream's share is complete

# Where a batch-norm layer keeps its memory. Not as a submodule: the caller's model keeps its names.
_MEMORY = "_attakit_stream_memory"


class StreamStatistics(nn.Module):
    """What the batch-norm layers of a model remember of recent batches.

    It is a module so that it is saved, copied and moved with the classifier that owns it. The
    model itself keeps its parameter names.

    Parameters
    ----------
    model
        Its batch-norm layers normalise with blended statistics from now on.
    source_share
        Weight of the stored statistics, 0 to 1; the stream has the rest.
    window
        Samples that the stream's statistics look back on. A batch of that size or more is on its
        own; a smaller one is filled up with memory of earlier ones, down to single samples.

    Examples
    --------
    >>> layer = nn.BatchNorm1d(1).eval()  # stored: mean 0, variance 1
    >>> stream = StreamStatistics(layer, source_share=0.5)
    >>> _ = layer(torch.tensor([[7.0], [9.0]] * 16))
    >>> stream.keep()
    >>> [float(each) for each in blended_statistics(layer)]
    [4.0, 1.0]
    """

    def __init__(
        self, model: nn.Module, *, source_share: float = SOURCE_SHARE, window: int = WINDOW
    ) -> None:
        check_range("StreamStatistics", "source_share", source_share, at_least=0, at_most=1)
        check_count("StreamStatistics", "window", window, at_least=1)
        super().__init__()
        self.layers = nn.ModuleList()
        for layer in batch_norm_layers(model):
            if layer.running_mean is not None and layer.running_var is not None:
                memory = _Memory(layer.running_mean, source_share, window)
                self.layers.append(memory)
                layer.__dict__[_MEMORY] = memory
                layer.__dict__["forward"] = MethodType(_forward_blended, layer)

    def keep(self) -> None:
        """Remember the batch that passed last. Without this call a pass changes nothing."""
        for memory in self.layers:
            assert isinstance(memory, _Memory)
            memory.keep()

    def shorten(self, samples: int) -> None:
        """Limit how many samples the memory counts for, so that new ones replace it sooner."""
        for memory in self.layers:
            assert isinstance(memory, _Memory)
            memory.count.clamp_(max=float(samples))


def blended_statistics(layer: _BatchNorm) -> tuple[Tensor, Tensor]:
    """Mean and variance that a layer's memory and its stored statistics give, without a batch."""
    memory = layer.__dict__[_MEMORY]
    return _blend(layer, memory, memory.mean, memory.variance, float(memory.count))


def freeze_blended(model: nn.Module) -> None:
    """Store the present blend in every layer that blends, and let it go by it from now on.

    For export: the result answers each sample by itself. Layers without blending stay as they are.

    >>> layer = nn.BatchNorm1d(1).eval()
    >>> stream = StreamStatistics(layer, source_share=0.5)
    >>> _ = layer(torch.tensor([[7.0], [9.0]] * 16))
    >>> stream.keep()
    >>> freeze_blended(layer)
    >>> float(layer.running_mean)
    4.0
    """
    for layer in batch_norm_layers(model):
        if _MEMORY in layer.__dict__:
            layer.running_mean, layer.running_var = blended_statistics(layer)
    stop_blending(model)


def stop_blending(model: nn.Module) -> None:
    """Let every layer that blends go by its stored statistics again."""
    for layer in batch_norm_layers(model):
        if layer.__dict__.pop(_MEMORY, None) is not None:
            del layer.__dict__["forward"]


class _Memory(nn.Module):
    """Mean and variance of the last samples that passed one layer."""

    mean: Tensor
    variance: Tensor
    count: Tensor

    def __init__(self, like: Tensor, source_share: float, window: int) -> None:
        super().__init__()
        self.source_share = source_share
        self.window = window
        self.register_buffer("mean", torch.zeros_like(like))
        self.register_buffer("variance", torch.ones_like(like))
        self.register_buffer("count", torch.zeros((), dtype=like.dtype, device=like.device))
        self.latest: tuple[Tensor, Tensor, float] | None = None

    def joined(self, mean: Tensor, variance: Tensor, count: int) -> tuple[Tensor, Tensor, float]:
        """Statistics of a batch and of as much memory as fits into the window with it.

        A batch whose statistics are not finite is left out: it would spoil the memory for good.
        """
        kept = min(float(self.count), float(max(0, self.window - count)))
        total = kept + count
        share = kept / total
        between = share * (1 - share) * (mean - self.mean).square()
        joined = mean.lerp(self.mean, share), variance.lerp(self.variance, share) + between
        if not all(bool(each.isfinite().all()) for each in joined):
            return self.mean, self.variance, float(self.count)
        return *joined, total

    def keep(self) -> None:
        if self.latest is not None:
            mean, variance, count = self.latest
            self.mean.copy_(mean)
            self.variance.copy_(variance)
            self.count.fill_(count)
            self.latest = None


def _forward_blended(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    memory: _Memory = layer.__dict__[_MEMORY]
    if inputs.numel() == 0:
        return evaluate_with(layer, inputs, layer.running_mean, layer.running_var)
    mean, variance = _statistics(inputs.detach(), memory.mean.dtype)
    memory.latest = memory.joined(mean, variance, len(inputs))
    return evaluate_with(layer, inputs, *_blend(layer, memory, *memory.latest))


def _blend(
    layer: _BatchNorm, memory: _Memory, mean: Tensor, variance: Tensor, count: float
) -> tuple[Tensor, Tensor]:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    share = (1 - memory.source_share) * min(1.0, count / _SETTLED)
    return layer.running_mean.lerp(mean, share), layer.running_var.lerp(variance, share)


def _statistics(inputs: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Mean and variance per channel, from a grid of positions where there are very many."""
    positions = inputs[0, 0].numel()
    axes = inputs.ndim - 2
    stride = 1
    while axes and len(inputs) * positions / stride**axes > _VALUES and stride**axes < positions:
        stride += 1
    # From half a stride on, so that the grid does not lie on the padded border.
    grid = (slice(None), slice(None), *[slice(stride // 2, None, stride)] * axes)
    sample = inputs[grid].to(dtype)
    variance, mean = torch.var_mean(sample, [0, *range(2, inputs.ndim)], correction=0)
    return mean, variance
