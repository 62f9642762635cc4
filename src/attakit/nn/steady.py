"""Normalise stored samples with the stream's current statistics, not with their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from attakit.nn.norm import batch_norm_layers
from attakit.nn.stream_memory import blends, styles_of


@contextmanager
def steady_statistics(model: nn.Module) -> Iterator[None]:
    """Let blending layers use their memory inside the block, for any input.

    A mini-batch of stored samples mixes earlier domains. Its own statistics are not those that will
    normalise the next batch of the stream. With style groups, every sample is normalised by the
    memory of its own groups.

    >>> import torch
    >>> from attakit.nn.blended import StreamStatistics
    >>> layer = nn.BatchNorm1d(1).eval()
    >>> stream = StreamStatistics(layer, source_share=0.0)
    >>> _ = layer(torch.tensor([[7.0], [9.0]] * 16))
    >>> stream.keep()
    >>> with steady_statistics(layer):
    ...     layer(torch.tensor([[8.0], [0.0]])).detach().round().flatten().tolist()
    [0.0, -8.0]
    """
    styles = {styles_of(layer) for layer in batch_norm_layers(model) if blends(layer)}
    for each in styles:
        each.is_steady = True
    try:
        yield
    finally:
        for each in styles:
            each.is_steady = False
