"""Normalise stored samples with what the stream's statistics are now, not with their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.nn.blended import blended_statistics
from attakit.nn.norm import batch_norm_layers


@contextmanager
def steady_statistics(model: nn.Module) -> Iterator[None]:
    """Inside, layers that blend use what they remember, whatever passes through them.

    A mini-batch of stored samples is a mix of earlier domains. Its own statistics are not those
    that the next batch of the stream will be normalised with.

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
    before = []
    for layer in batch_norm_layers(model):
        remembered = _remembered(layer)
        if remembered is not None:
            stored = layer.running_mean, layer.running_var
            before.append((layer, layer.__dict__.pop("forward"), stored))
            layer.running_mean, layer.running_var = remembered
    try:
        yield
    finally:
        for layer, forward, stored in before:
            layer.__dict__["forward"] = forward
            layer.running_mean, layer.running_var = stored


def _remembered(layer: _BatchNorm) -> tuple[Tensor, Tensor] | None:
    try:
        return blended_statistics(layer)
    except KeyError:  # it does not blend
        return None
