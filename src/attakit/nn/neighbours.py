"""Smoothing of predictions: samples with similar features should get similar answers."""

from __future__ import annotations

import torch
from torch import Tensor

_ROUNDS = 5
_SMALLEST = 1e-8


def smooth(
    chances: Tensor, features: Tensor, *, strength: float = 1.0, neighbours: int = 5
) -> Tensor:
    """Let every sample's prediction lean towards those of its nearest neighbours.

    A few rounds of q ← softmax(log p + strength · W q), where W holds the cosine similarities of
    nearest neighbours, made symmetric. Samples without a similar one keep their prediction.

    Parameters
    ----------
    chances
        Probabilities, one row per sample.
    features
        Rows of length 1.
    strength
        0 changes nothing.
    neighbours
        How many of the nearest count.

    Examples
    --------
    >>> chances = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    >>> features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> smooth(chances, features, neighbours=2).argmax(dim=1)
    tensor([0, 0, 0])
    """
    count = min(neighbours, len(chances) - 1)
    if count < 1 or strength == 0:
        return chances
    similar = features @ features.T
    similar.fill_diagonal_(-1.0)
    values, places = similar.topk(count, dim=1)
    near = torch.zeros_like(similar).scatter_(1, places, values.clamp(min=0))
    near = (near + near.T) / 2
    own = chances.clamp(min=_SMALLEST).log()
    for _ in range(_ROUNDS):
        chances = (own + strength * near @ chances).softmax(dim=1)
    return chances
