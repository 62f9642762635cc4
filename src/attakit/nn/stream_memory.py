"""What blended batch-norm layers remember of a stream, and how they normalise with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MethodType

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.nn.norm import evaluate_with
from attakit.nn.row_norm import PLAIN, normalise_rows
from attakit.nn.share_search import FixedShare, ShareSearch
from attakit.nn.styles import Grouping, StyleGroups, style_vectors
from attakit.queries import SampleId

_VALUES = 1600  # per channel: more values are slower, not better
_STYLE_VALUES = 1024  # per channel and sample: with fewer the style of a single sample is noisy
_SETTLED = 16  # samples before the stream's share is complete
_SMALLEST = 1e-6

_Statistics = tuple[Tensor, Tensor, Tensor]  # mean, variance and number of samples, by group

# Attribute of a layer for its memory. Not a submodule: the caller's model keeps its names.
_MEMORY = "_attakit_stream_memory"


class PassStyles:
    """The style groups of a model, and the membership of the current batch."""

    def __init__(self, groups: StyleGroups | None, share: FixedShare | ShareSearch) -> None:
        self.groups = groups
        self.share = share
        self.grouping: Grouping | None = None
        self.inputs: Tensor | None = None  # of the current pass, for a second look
        self.is_steady = False  # layers use their memory alone, and no groups are searched for
        self.is_held = False  # all passes use the statistics of the first one

    @property
    def most(self) -> int:
        return 1 if self.groups is None else self.groups.most

    def start(self, model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Hide the groups of the previous batch from layers before the first convolution."""
        del model
        if not self.share.is_trying:
            self.grouping, self.inputs = None, inputs[0]

    def look(self, layer: nn.Module, inputs: object, outputs: Tensor) -> None:
        del layer, inputs
        if self.groups is None or len(outputs) == 0 or self.share.is_trying:
            return
        styles, given, self.inputs = sampled_styles(outputs), self.inputs, None
        known = self.groups
        self.grouping = known.recall(styles) if self.is_steady else known.after(styles, given)

    def keep(self, samples: Sequence[SampleId]) -> None:
        if self.groups is not None and self.grouping is not None:
            self.groups.keep(self.grouping, samples)


def start_layer(layer: _BatchNorm, memory: LayerMemory) -> None:
    """Let a layer normalise with a memory."""
    layer.__dict__[_MEMORY] = memory
    layer.__dict__["forward"] = MethodType(_forward_blended, layer)


def blends(layer: _BatchNorm) -> bool:
    """True if a layer normalises with a memory."""
    return _MEMORY in layer.__dict__


def styles_of(layer: _BatchNorm) -> PassStyles:
    """Return the styles that a blending layer shares with the others of its model."""
    memory: LayerMemory = layer.__dict__[_MEMORY]
    return memory.styles


def stop_layer(layer: _BatchNorm) -> None:
    """Let a layer use its stored statistics again."""
    if blends(layer):
        del layer.__dict__[_MEMORY], layer.__dict__["forward"]


class LayerMemory(nn.Module):
    """Mean and variance of the last samples at one layer, by style group."""

    mean: Tensor  # (groups, channels)
    variance: Tensor  # (groups, channels)
    count: Tensor  # (groups,)

    def __init__(self, like: Tensor, window: int, styles: PassStyles) -> None:
        super().__init__()
        self.window = window
        self.styles = styles
        rows = like.new_zeros(styles.most, len(like))
        self.register_buffer("mean", rows)
        self.register_buffer("variance", torch.ones_like(rows))
        self.register_buffer("count", rows.new_zeros(len(rows)))
        self.latest: tuple[Tensor, Tensor, Tensor] | None = None

    @property
    def is_held(self) -> bool:
        """True if this pass uses the statistics of an earlier one."""
        return self.styles.is_held and self.latest is not None

    @property
    def source_share(self) -> float:
        return self.styles.share.value

    def joined(self, mean: Tensor, variance: Tensor, count: Tensor) -> _Statistics:
        """Return the statistics of a batch and of the memory that fits into the window with it.

        All are by group. Groups without a sample in the batch keep their memory. A batch with
        statistics that are not finite is ignored: it would damage the memory for good.
        """
        if not math.isfinite(float(variance.sum())):
            old = self.regrouped(len(count))
            return old[0].clone(), old[1].clone(), old[2].clone()  # `keep` overwrites the memory
        if bool((count >= self.window).all()):
            return mean, variance, count
        old = self.regrouped(len(count))
        kept = torch.minimum(old[2], (self.window - count).clamp(min=0))
        kept = torch.where(count < _SMALLEST, old[2], kept)
        total = kept + count
        share = (kept / total.clamp(min=_SMALLEST))[:, None]
        between = share * (1 - share) * (mean - old[0]).square()
        return mean.lerp(old[0], share), variance.lerp(old[1], share) + between, total

    def regrouped(self, groups: int) -> _Statistics:
        """Return the memory by the groups of the current pass."""
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

    def move(self, distance: Tensor, ratio: Tensor) -> None:
        """Adjust to changed weights: other means, and scaled variances."""
        self.mean += distance.to(self.mean)
        self.variance *= ratio.to(self.variance)

    def keep(self) -> None:
        if self.latest is not None:
            for buffer, latest in zip(
                (self.mean, self.variance, self.count), self.latest, strict=True
            ):
                buffer.zero_()
                buffer[: len(latest)] = latest
            self.latest = None


def _forward_blended(layer: _BatchNorm, inputs: Tensor) -> Tensor:
    memory: LayerMemory = layer.__dict__[_MEMORY]
    if inputs.numel() == 0:
        return evaluate_with(layer, inputs, layer.running_mean, layer.running_var)
    grouping = memory.styles.grouping
    if memory.styles.is_steady:
        return _forward_steadily(layer, memory, grouping, inputs)
    if grouping is None or grouping.is_plain:
        if memory.latest is None or not memory.is_held:
            memory.latest = memory.joined(*_of_one_group(inputs, memory.mean.dtype))
        mean, variance, total = memory.latest
        blend = _blend(layer, memory, mean[0], variance[0], float(total))
        if type(layer) not in PLAIN:
            return evaluate_with(layer, inputs, *blend)
        return F.batch_norm(inputs, *blend, layer.weight, layer.bias, eps=layer.eps)
    return _forward_grouped(layer, memory, grouping, inputs)


def _forward_grouped(
    layer: _BatchNorm, memory: LayerMemory, grouping: Grouping, inputs: Tensor
) -> Tensor:
    """Normalise every sample by the statistics of its own groups."""
    members = grouping.members.to(memory.mean)
    away = 1 - grouping.home.to(members)
    memory.latest = memory.joined(*_by_group(inputs, members * away[:, None]))
    mean, variance = _row_statistics(layer, memory, members, away, memory.latest)
    return normalise_rows(layer, inputs, mean, variance)


def _forward_steadily(
    layer: _BatchNorm, memory: LayerMemory, grouping: Grouping | None, inputs: Tensor
) -> Tensor:
    """Normalise with the memory alone."""
    if grouping is None or grouping.is_plain:
        return evaluate_with(layer, inputs, *blended_statistics(layer))
    members, away = grouping.members.to(memory.mean), 1 - grouping.home.to(memory.mean)
    known = memory.regrouped(members.shape[1])
    return normalise_rows(layer, inputs, *_row_statistics(layer, memory, members, away, known))


def _row_statistics(
    layer: _BatchNorm, memory: LayerMemory, members: Tensor, away: Tensor, known: _Statistics
) -> tuple[Tensor, Tensor]:
    """Return mean and variance for each sample, from those of its groups."""
    mean, variance, total = known
    share = (1 - memory.source_share) * away * (members @ _settled(total))
    assert layer.running_mean is not None
    assert layer.running_var is not None
    return (
        layer.running_mean.lerp(members @ mean, share[:, None]),
        layer.running_var.lerp(members @ variance, share[:, None]),
    )


def used_statistics(layer: _BatchNorm, rows: int) -> tuple[Tensor, Tensor]:
    """Return the mean and variance that normalised each sample of the last batch."""
    memory: LayerMemory = layer.__dict__[_MEMORY]
    known = memory.latest or (memory.mean, memory.variance, memory.count)
    grouping = memory.styles.grouping
    if grouping is None:
        members, away = known[0].new_ones(rows, 1), known[0].new_ones(rows)
    else:
        members, away = grouping.members.to(known[0]), 1 - grouping.home.to(known[0])
    groups = members.shape[1]
    first = known[0][:groups], known[1][:groups], known[2][:groups]
    return _row_statistics(layer, memory, members, away, first)


def _of_one_group(inputs: Tensor, dtype: torch.dtype) -> _Statistics:
    """Like `_by_group`, if all samples are in one group."""
    sample = _sampled(inputs.detach()).to(dtype)
    rows = sample.movedim(1, -1).reshape(-1, inputs.shape[1])
    mean = rows.mean(dim=0, keepdim=True)
    variance = (rows - mean).square_().mean(dim=0, keepdim=True)
    return mean, variance, mean.new_full((1,), len(inputs))


def _by_group(inputs: Tensor, members: Tensor) -> _Statistics:
    """Return mean, variance and number of samples of each group, from a grid of positions.

    Sums over samples are matrix products: torch is much slower at reducing several axes.
    """
    sample = _sampled(inputs.detach()).to(members.dtype)
    rows = sample.reshape(len(inputs), inputs.shape[1], -1)
    count = members.sum(dim=0)
    shares = (members / count.clamp(min=_SMALLEST)).T
    middle = _averages(shares.mean(dim=0, keepdim=True), rows)
    rows = rows - middle[0, :, None]  # the square of a large mean would swamp the variance
    mean = _averages(shares, rows)
    variance = _averages(shares, rows.square_()) - mean.square()
    return mean + middle, variance.clamp(min=0), count


def _averages(shares: Tensor, rows: Tensor) -> Tensor:
    """Return weighted means over samples and positions: (groups, channels)."""
    found = shares @ rows.flatten(1)
    return found.view(len(shares), rows.shape[1], -1).mean(dim=2)


def _blend(
    layer: _BatchNorm, memory: LayerMemory, mean: Tensor, variance: Tensor, count: Tensor | float
) -> tuple[Tensor, Tensor]:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    settled = min(count / _SETTLED, 1.0) if isinstance(count, float) else _settled(count)
    share = (1 - memory.source_share) * settled
    return layer.running_mean.lerp(mean, share), layer.running_var.lerp(variance, share)


def _settled(count: Tensor) -> Tensor:
    return (count / _SETTLED).clamp(max=1)


def _sampled(inputs: Tensor) -> Tensor:
    """Return a grid of positions if there are very many."""
    return _strided(inputs, _stride(inputs, len(inputs), _VALUES))


def _stride(inputs: Tensor, rows: int, most: int) -> int:
    """Return the step of a grid on which `rows` samples have at most this many positions."""
    positions, axes = math.prod(inputs.shape[2:]), inputs.ndim - 2
    stride = 1
    while axes and rows * positions / stride**axes > most and stride**axes < positions:
        stride += 1
    return stride


def _strided(inputs: Tensor, stride: int) -> Tensor:
    # From half a stride on, to avoid the padded border.
    grid = [slice(stride // 2, None, stride)] * (inputs.ndim - 2)
    return inputs[(slice(None), slice(None), *grid)]


def blended_statistics(layer: _BatchNorm) -> tuple[Tensor, Tensor]:
    """Return mean and variance from a layer's memory and its stored statistics, without a batch.

    Style groups count by their numbers of samples.
    """
    memory: LayerMemory = layer.__dict__[_MEMORY]
    counts = memory.count[:, None]
    shares = counts / counts.sum().clamp(min=_SMALLEST)
    mean = (shares * memory.mean).sum(dim=0)
    between = (shares * (memory.mean - mean).square()).sum(dim=0)
    variance = (shares * memory.variance).sum(dim=0) + between
    return _blend(layer, memory, mean, variance, counts.sum())


def grouped_statistics(layer: _BatchNorm, groups: int) -> tuple[Tensor, Tensor] | None:
    """Like `blended_statistics`, but one row per style group.

    None for a layer that has seen no groups, because it is before the first convolution.
    """
    memory: LayerMemory = layer.__dict__[_MEMORY]
    if groups > 1 and not bool(memory.count[1:groups].any()):
        return None
    counts = memory.count[:groups, None]
    return _blend(layer, memory, memory.mean[:groups], memory.variance[:groups], counts)


def sampled_styles(activations: Tensor) -> Tensor:
    """Return style vectors, from a grid of positions if there are very many."""
    # Per sample: the batch size must not become a constant of an exported program.
    return style_vectors(_strided(activations.detach(), _stride(activations, 1, _STYLE_VALUES)))
