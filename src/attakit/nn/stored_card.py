"""Guess a source card from stored batch-norm statistics, for a model without one.

The batch norm after the first convolution knows mean and variance of each channel over all source
samples. It does not know how much samples differ from each other, which a card must contain. This
is taken from the stream: the cloud of source samples is assumed to have the shape of the stream's
own clouds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from attakit.nn.gaussians import Array, Card

_SMALLEST = 1e-6


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """The stored batch-norm statistics of the first convolution's output.

    Parameters
    ----------
    mean, variance
        Mean and variance of each channel, over samples and positions.
    """

    mean: Array  # (channels,)
    variance: Array  # (channels,)

    def card(self, styles: Array, members: Array) -> Card:
        """Guess the card of source samples, with a cloud shaped like those of a stream.

        Parameters
        ----------
        styles
            Style vectors of the stream: mean and log variance of each channel, one row per sample.
        members
            How much each sample belongs to each group of the stream; rows add up to 1.

        Examples
        --------
        >>> stored = StoredStatistics(np.array([5.0]), np.array([1.0]))
        >>> card = stored.card(np.array([[0.0, 0.0], [0.2, 0.0]]), np.ones((2, 1)))
        >>> card.mean.round(2).tolist()
        [5.0, -0.01]
        """
        channels = len(self.mean)
        mass = members.sum(axis=0) + _SMALLEST
        centres = members.T @ styles / mass[:, None]
        rest = styles - members @ centres
        variance = members.T @ (np.exp(styles[:, channels:]) + np.square(rest[:, :channels]))
        logs = np.log(variance / mass[:, None])
        shares = mass / mass.sum()
        gap = shares @ (logs - centres[:, channels:])
        scale = np.ones(2 * channels)
        scale[:channels] = np.sqrt(self.variance / np.exp(shares @ logs))
        mean = np.concatenate([self.mean, np.log(self.variance) - gap])
        return Card(mean, rest.T @ rest / len(rest) * np.outer(scale, scale))


def stored_statistics(model: nn.Module) -> StoredStatistics | None:
    """Return the statistics of the batch norm after the first convolution; None if there is none.

    >>> from attakit.nn.small import SmallCNN
    >>> stored = stored_statistics(SmallCNN())
    >>> stored.mean.shape
    (16,)
    """
    layers = list(model.modules())
    first = next((place for place, layer in enumerate(layers) if isinstance(layer, _ConvNd)), None)
    if first is None:
        return None
    norm = next((layer for layer in layers[first:] if isinstance(layer, _BatchNorm)), None)
    if norm is None or norm.running_mean is None or norm.running_var is None:
        return None
    if norm.num_features != layers[first].out_channels:
        return None
    mean, variance = (each.double().cpu().numpy() for each in (norm.running_mean, norm.running_var))
    return StoredStatistics(mean.copy(), np.maximum(variance, _SMALLEST))
