"""Blended normalisation: batch-norm statistics mixed from the source's and the stream's.

With style groups, every group has its own statistics, and a sample is normalised by those of its
groups. Samples from the source are normalised by the source's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from attakit.errors import check_count, check_range
from attakit.nn.norm import batch_norm_layers
from attakit.nn.share_search import ROW_SHARES, SHARES, FixedShare, ShareSearch
from attakit.nn.stream_memory import (
    LayerMemory,
    PassStyles,
    blended_statistics,
    blends,
    start_layer,
    stop_layer,
)
from attakit.nn.styles import Grouping, StyleGroups
from attakit.queries import SampleId

SourceShare = float | Literal["auto"]

SOURCE_SHARE = 0.6
WINDOW = 100


class StreamStatistics(nn.Module):
    """What the batch-norm layers of a model remember of recent batches.

    It is a module so that it is saved, copied and moved with its classifier. The model itself keeps
    its parameter names.

    Parameters
    ----------
    model
        The model whose batch-norm layers then use blended statistics.
    source_share
        Weight of the stored statistics, 0 to 1; the stream has the rest. "auto" tries several on
        the first samples.
    window
        Number of samples in the stream's statistics. A batch of that size or more is used alone. A
        smaller one is filled up with the memory of earlier ones, down to single samples.
    groups
        Finds styles in the output of the first convolution. None keeps one set of statistics. A
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
        self.styles = PassStyles(groups, self.share)
        self.layers = nn.ModuleList()
        for layer in _blendable(model):
            assert layer.running_mean is not None
            self.layers.append(LayerMemory(layer.running_mean, window, self.styles))
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
        shares = ROW_SHARES if first_convolution(model) is None else SHARES
        trials = [StreamStatistics(model, source_share=each, window=window) for each in shares]
        model.register_forward_pre_hook(self._search)
        return ShareSearch(trials, first=SOURCE_SHARE, shares=shares)

    def attach(self, model: nn.Module) -> None:
        """Let the batch-norm layers of a model use these statistics."""
        for layer, memory in zip(_blendable(model), self._memories(), strict=True):
            start_layer(layer, memory)

    def _search(self, model: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if any(memory.is_held for memory in self._memories()):
            return
        # The first pass of a batch answers it, even if gradients are taken of this answer.
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.styles.is_held):
            looked = self.share.look(model, inputs[0])
        if looked:
            self.attach(model)

    def search_again(self, model: nn.Module, inputs: Tensor) -> None:
        """Search for the share again from these samples on, because a new domain has begun."""
        self.share.restart()
        with torch.no_grad():
            if self.share.look(model, inputs):
                self.share.keep()
                self.attach(model)

    def compare_shares(self, model: nn.Module, samples: Sequence[SampleId], inputs: Tensor) -> None:
        """Try shares on samples in question; `share.learn` takes their labels."""
        if self.share.hold(model, samples, inputs):
            self.attach(model)

    @property
    def grouping(self) -> Grouping | None:
        """Style groups of the last batch; None without any."""
        return self.styles.grouping

    def keep(self, samples: Sequence[SampleId] = ()) -> None:
        """Remember the last batch. Without this call a pass changes nothing."""
        for memory in self._memories():
            memory.keep()
        self.styles.keep(samples)
        self.share.keep()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Normalise every pass inside the block with the statistics of the first one.

        The first pass answers a batch. Later ones, of views or parts of it, say nothing about the
        stream. There may be no style groups.
        """
        assert self.styles.groups is None, "the groups of a pass are those of its own samples"
        for memory in self._memories():
            memory.latest = None
        self.styles.is_held = True
        try:
            yield
        finally:
            self.styles.is_held = False

    def shorten(self, samples: int) -> None:
        """Limit how many samples the memory counts for, so that new ones replace it sooner."""
        for memory in self._memories():
            memory.count.clamp_(max=float(samples))

    def _memories(self) -> Iterator[LayerMemory]:
        for memory in self.layers:
            assert isinstance(memory, LayerMemory)
            yield memory


def memories_of(stream: StreamStatistics, model: nn.Module, layer: _BatchNorm) -> list[LayerMemory]:
    """Return the memories of one batch-norm layer, including trials of other shares."""
    place = _blendable(model).index(layer)
    streams = [each for each in stream.modules() if isinstance(each, StreamStatistics)]
    found = [each.layers[place] for each in streams]
    return [each for each in found if isinstance(each, LayerMemory)]


def _blendable(model: nn.Module) -> list[_BatchNorm]:
    """Batch-norm layers that have stored statistics."""
    layers = batch_norm_layers(model)
    return [
        each for each in layers if each.running_mean is not None and each.running_var is not None
    ]


def first_convolution(model: nn.Module) -> nn.Module | None:
    """Return the layer whose output shows the style of a sample; None if there is none."""
    return next((layer for layer in model.modules() if isinstance(layer, _ConvNd)), None)


def freeze_blended(model: nn.Module) -> None:
    """Store the current blend in every blending layer, and use it from now on.

    For export: the result answers each sample alone. Other layers stay unchanged.

    >>> layer = nn.BatchNorm1d(1).eval()
    >>> stream = StreamStatistics(layer, source_share=0.5)
    >>> _ = layer(torch.tensor([[7.0], [9.0]] * 16))
    >>> stream.keep()
    >>> freeze_blended(layer)
    >>> float(layer.running_mean)
    4.0
    """
    for layer in batch_norm_layers(model):
        if blends(layer):
            layer.running_mean, layer.running_var = blended_statistics(layer)
    stop_blending(model)


def stop_blending(model: nn.Module) -> None:
    """Let every blending layer use its stored statistics again."""
    for layer in model.modules():
        for hooks in (layer._forward_hooks, layer._forward_pre_hooks):
            for key, hook in list(hooks.items()):
                if isinstance(getattr(hook, "__self__", None), (PassStyles, StreamStatistics)):
                    del hooks[key]
    for layer in batch_norm_layers(model):
        stop_layer(layer)
