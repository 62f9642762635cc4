"""Blended normalisation: batch-norm statistics mixed from the source's and the stream's.

With style groups, every group has statistics of its own, and a sample is normalised by those of the
groups it belongs to. Samples from the source are normalised by the source's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MethodType
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from attakit.errors import check_count, check_range
from attakit.nn.norm import batch_norm_layers, evaluate_with, moments
from attakit.nn.share_search import SHARES, FixedShare, ShareSearch
from attakit.nn.styles import Grouping, StyleGroups, style_vectors
from attakit.queries import SampleId

SourceShare = float | Literal["auto"]

SOURCE_SHARE = 0.6
WINDOW = 100
_VALUES = 6400  # per channel: more make the statistics slower, not better
_STYLE_VALUES = 1024  # per channel and sample: fewer make the style of a single sample noisy
_SETTLED = 16  # samples before the stream's share is complete
_SMALLEST = 1e-6

_PLAIN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)

_Statistics = tuple[Tensor, Tensor, Tensor]  # mean, variance and number of samples, by group

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
        Weight of the stored statistics, 0 to 1; the stream has the rest. "auto" tries several on
        the first samples.
    window
        Samples that the stream's statistics look back on. A batch of that size or more is on its
        own; a smaller one is filled up with memory of earlier ones, down to single samples.
    groups
        Looks for styles in what the first convolution says. None keeps one set of statistics. A
        model without convolutions has no styles.

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
        self,
        model: nn.Module,
        *,
        source_share: SourceShare = SOURCE_SHARE,
        window: int = WINDOW,
        groups: StyleGroups | None = None,
    ) -> None:
        check_count("StreamStatistics", "window", window, at_least=1)
        super().__init__()
        self.share = self._fixed_or_searched(model, source_share, window)
        self.styles = _Styles(groups, self.share)
        self.layers = nn.ModuleList()
        for layer in _blendable(model):
            assert layer.running_mean is not None
            self.layers.append(_Memory(layer.running_mean, self.share, window, self.styles))
        self.attach(model)
        first = first_convolution(model)
        if groups is not None and first is not None:
            model.register_forward_pre_hook(self.styles.start)
            first.register_forward_hook(self.styles.look)

    def _fixed_or_searched(
        self, model: nn.Module, source_share: SourceShare, window: int
    ) -> FixedShare | ShareSearch:
        if source_share != "auto":
            check_range("StreamStatistics", "source_share", source_share, at_least=0, at_most=1)
            return FixedShare(source_share)
        if not _blendable(model):
            return FixedShare(SOURCE_SHARE)
        trials = [StreamStatistics(model, source_share=each, window=window) for each in SHARES]
        model.register_forward_pre_hook(self._search)
        return ShareSearch(trials, first=SOURCE_SHARE)

    def attach(self, model: nn.Module) -> None:
        """Let the batch-norm layers of a model use these statistics."""
        for layer, memory in zip(_blendable(model), self.layers, strict=True):
            layer.__dict__[_MEMORY] = memory
            layer.__dict__["forward"] = MethodType(_forward_blended, layer)

    def _search(self, model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if self.share.look(model, inputs[0]):
            self.attach(model)

    def search_again(self, model: nn.Module, inputs: Tensor) -> None:
        """Search for the share from these samples on, because a new domain has begun."""
        self.share.restart()
        with torch.no_grad():
            if self.share.look(model, inputs):
                self.share.keep()
                self.attach(model)

    def compare_shares(self, model: nn.Module, samples: Sequence[SampleId], inputs: Tensor) -> None:
        """Try shares on samples that are asked about; `share.learn` takes their labels."""
        if self.share.hold(model, samples, inputs):
            self.attach(model)

    @property
    def grouping(self) -> Grouping | None:
        """How the batch that passed last belongs to style groups; None without any."""
        return self.styles.grouping

    def keep(self, samples: Sequence[SampleId] = ()) -> None:
        """Remember the batch that passed last. Without this call a pass changes nothing."""
        for memory in self.layers:
            assert isinstance(memory, _Memory)
            memory.keep()
        self.styles.keep(samples)
        self.share.keep()

    def shorten(self, samples: int) -> None:
        """Limit how many samples the memory counts for, so that new ones replace it sooner."""
        for memory in self.layers:
            assert isinstance(memory, _Memory)
            memory.count.clamp_(max=float(samples))


def _blendable(model: nn.Module) -> list[_BatchNorm]:
    """Batch-norm layers that have stored statistics."""
    layers = batch_norm_layers(model)
    return [
        each for each in layers if each.running_mean is not None and each.running_var is not None
    ]


def first_convolution(model: nn.Module) -> nn.Module | None:
    """The layer whose output shows the style of a sample; None where there is none."""
    return next((layer for layer in model.modules() if isinstance(layer, _ConvNd)), None)


def sampled_styles(activations: Tensor) -> Tensor:
    """Style vectors, from a grid of positions where there are very many."""
    # Per sample: the size of the batch must not become a constant of an exported program.
    return style_vectors(_strided(activations.detach(), _stride(activations, 1, _STYLE_VALUES)))


class _Styles:
    """The style groups of a model, and how the batch in the present pass belongs to them."""

    def __init__(self, groups: StyleGroups | None, share: FixedShare | ShareSearch) -> None:
        self.groups = groups
        self.share = share
        self.grouping: Grouping | None = None

    @property
    def most(self) -> int:
        return 1 if self.groups is None else self.groups.most

    def start(self, model: nn.Module, inputs: object) -> None:
        """Layers before the first convolution must not see the groups of the batch before."""
        del model, inputs
        if not self.share.is_trying:
            self.grouping = None

    def look(self, layer: nn.Module, inputs: object, outputs: Tensor) -> None:
        del layer, inputs
        if self.groups is not None and len(outputs) and not self.share.is_trying:
            self.grouping = self.groups.after(sampled_styles(outputs))

    def keep(self, samples: Sequence[SampleId]) -> None:
        if self.groups is not None and self.grouping is not None:
            self.groups.keep(self.grouping, samples)


def blended_statistics(layer: _BatchNorm) -> tuple[Tensor, Tensor]:
    """Mean and variance that a layer's memory and its stored statistics give, without a batch.

    Style groups count by their numbers of samples.
    """
    memory: _Memory = layer.__dict__[_MEMORY]
    counts = memory.count[:, None]
    shares = counts / counts.sum().clamp(min=_SMALLEST)
    mean = (shares * memory.mean).sum(dim=0)
    between = (shares * (memory.mean - mean).square()).sum(dim=0)
    variance = (shares * memory.variance).sum(dim=0) + between
    return _blend(layer, memory, mean, variance, counts.sum())


def grouped_statistics(layer: _BatchNorm, groups: int) -> tuple[Tensor, Tensor] | None:
    """As `blended_statistics`, but a row for each style group.

    None for a layer that has seen no groups, because it is in front of the first convolution.
    """
    memory: _Memory = layer.__dict__[_MEMORY]
    if groups > 1 and not bool(memory.count[1:groups].any()):
        return None
    counts = memory.count[:groups, None]
    return _blend(layer, memory, memory.mean[:groups], memory.variance[:groups], counts)


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
    for layer in model.modules():
        for hooks in (layer._forward_hooks, layer._forward_pre_hooks):
            for key, hook in list(hooks.items()):
                if isinstance(getattr(hook, "__self__", None), (_Styles, StreamStatistics)):
                    del hooks[key]
    for layer in batch_norm_layers(model):
        if layer.__dict__.pop(_MEMORY, None) is not None:
            del layer.__dict__["forward"]


class _Memory(nn.Module):
    """Mean and variance of the last samples that passed one layer, by style group."""

    mean: Tensor  # (groups, channels)
    variance: Tensor  # (groups, channels)
    count: Tensor  # (groups,)

    def __init__(
        self, like: Tensor, share: FixedShare | ShareSearch, window: int, styles: _Styles
    ) -> None:
        super().__init__()
        self._share = (share,)  # in a tuple, because it is not a part of this module
        self.window = window
        self.styles = styles
        rows = like.new_zeros(styles.most, len(like))
        self.register_buffer("mean", rows)
        self.register_buffer("variance", torch.ones_like(rows))
        self.register_buffer("count", rows.new_zeros(len(rows)))
        self.latest: tuple[Tensor, Tensor, Tensor] | None = None

    @property
    def source_share(self) -> float:
        return self._share[0].value

    def joined(self, mean: Tensor, variance: Tensor, count: Tensor) -> _Statistics:
        """Statistics of a batch and of as much memory as fits into the window with it.

        All by group, where groups that have no sample in the batch keep their memory. A batch whose
        statistics are not finite is left out: it would spoil the memory for good.
        """
        old = self._regrouped(len(count))
        kept = torch.minimum(old[2], (self.window - count).clamp(min=0))
        kept = torch.where(count < _SMALLEST, old[2], kept)
        total = kept + count
        share = (kept / total.clamp(min=_SMALLEST))[:, None]
        between = share * (1 - share) * (mean - old[0]).square()
        mean, variance = mean.lerp(old[0], share), variance.lerp(old[1], share) + between
        if not bool((mean.isfinite() & variance.isfinite()).all()):
            return old[0].clone(), old[1].clone(), old[2].clone()  # `keep` overwrites the memory
        return mean, variance, total

    def _regrouped(self, groups: int) -> _Statistics:
        """The memory by the groups of the present pass."""
        grouping = self.styles.grouping
        if grouping is None or grouping.moved is None:
            return self.mean[:groups], self.variance[:groups], self.count[:groups]
        moved = grouping.moved.to(self.mean)
        before = moved.shape[1]
        count = (moved / moved.sum(dim=0).clamp(min=_SMALLEST)) @ self.count[:before]
        shares = moved / moved.sum(dim=1, keepdim=True).clamp(min=_SMALLEST)
        mean = shares @ self.mean[:before]
        squares = shares @ (self.variance[:before] + self.mean[:before].square())
        return mean, (squares - mean.square()).clamp(min=0), count

    def keep(self) -> None:
        if self.latest is not None:
            for buffer, latest in zip(
                (self.mean, self.variance, self.count), self.latest, strict=True
            ):
                buffer.zero_()
                buffer[: len(latest)] = latest
            self.latest = None


def _forward_blended(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    memory: _Memory = layer.__dict__[_MEMORY]
    if inputs.numel() == 0:
        return evaluate_with(layer, inputs, layer.running_mean, layer.running_var)
    sample = _sampled(inputs.detach()).to(memory.mean.dtype)
    grouping = memory.styles.grouping
    if grouping is None or (grouping.members.shape[1] == 1 and not bool(grouping.home.any())):
        axes = (0, *range(2, inputs.ndim))
        mean, variance = moments(sample, axes)
        count = mean.new_full((1,), float(len(inputs)))
        memory.latest = memory.joined(mean[None], variance[None], count)
        mean, variance, total = memory.latest
        return evaluate_with(layer, inputs, *_blend(layer, memory, mean[0], variance[0], total[0]))
    return _forward_grouped(layer, memory, grouping, inputs, sample)


def _forward_grouped(
    layer: _BatchNorm, memory: _Memory, grouping: Grouping, inputs: Tensor, sample: Tensor
) -> Tensor:
    """Normalise every sample by the statistics of its own groups."""
    members = grouping.members.to(sample)
    away = 1 - grouping.home.to(sample)
    memory.latest = memory.joined(*_by_group(sample, members * away[:, None]))
    mean, variance, total = memory.latest
    share = (1 - memory.source_share) * away * (members @ (total / _SETTLED).clamp(max=1))
    assert layer.running_mean is not None
    assert layer.running_var is not None
    mean = layer.running_mean.lerp(members @ mean, share[:, None])
    variance = layer.running_var.lerp(members @ variance, share[:, None])
    scale = (variance + layer.eps).rsqrt()
    if type(layer) not in _PLAIN:  # a subclass may add an activation: run it on neutral statistics
        neutral = torch.zeros_like(layer.running_mean), torch.ones_like(layer.running_var)
        normal = torch.addcmul(_spread(-mean * scale, inputs), inputs, _spread(scale, inputs))
        return evaluate_with(layer, normal, neutral[0], neutral[1] - layer.eps)
    if layer.weight is not None:
        scale = scale * layer.weight
    shift = -mean * scale if layer.bias is None else layer.bias - mean * scale
    return torch.addcmul(_spread(shift, inputs), inputs, _spread(scale, inputs))


def _spread(rows: Tensor, inputs: Tensor) -> Tensor:
    """Rows per sample and channel, in a shape that applies to every position."""
    return rows.to(inputs.dtype).view(*rows.shape, *[1] * (inputs.ndim - 2))


def _by_group(sample: Tensor, members: Tensor) -> _Statistics:
    """Mean, variance and number of samples of each group, per channel."""
    axes = list(range(2, sample.ndim))
    count = members.sum(dim=0)
    shares = (members / count.clamp(min=_SMALLEST)).T
    means = sample.mean(axes) if axes else sample
    squares = sample.square().mean(axes) if axes else sample.square()
    mean = shares @ means
    return mean, (shares @ squares - mean.square()).clamp(min=0), count


def _blend(
    layer: _BatchNorm, memory: _Memory, mean: Tensor, variance: Tensor, count: Tensor
) -> tuple[Tensor, Tensor]:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    share = (1 - memory.source_share) * (count / _SETTLED).clamp(max=1)
    return layer.running_mean.lerp(mean, share), layer.running_var.lerp(variance, share)


def _sampled(inputs: Tensor, most: int = _VALUES) -> Tensor:
    """A grid of positions where there are very many."""
    return _strided(inputs, _stride(inputs, len(inputs), most))


def _stride(inputs: Tensor, rows: int, most: int) -> int:
    """The step of a grid on which `rows` samples have at most so many positions."""
    positions, axes = math.prod(inputs.shape[2:]), inputs.ndim - 2
    stride = 1
    while axes and rows * positions / stride**axes > most and stride**axes < positions:
        stride += 1
    return stride


def _strided(inputs: Tensor, stride: int) -> Tensor:
    # From half a stride on, so that the grid does not lie on the padded border.
    grid = [slice(stride // 2, None, stride)] * (inputs.ndim - 2)
    return inputs[(slice(None), slice(None), *grid)]
