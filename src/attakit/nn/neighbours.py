"""Smoothing of predictions: samples with similar features should get similar answers."""

from __future__ import annotations

import torch
from torch import Tensor

_ROUNDS = 5
_SMALLEST = 1e-8


def smooth(
    chances: Tensor,
    features: Tensor,
    known: tuple[Tensor, Tensor] | None = None,
    *,
    strength: float = 1.0,
    neighbours: int = 5,
) -> Tensor:
    """Move every sample's prediction towards those of its nearest neighbours.

    A few rounds of q ← softmax(log p + strength · W q), where W holds the cosine similarities of
    nearest neighbours. Samples without a similar one keep their prediction.

    Parameters
    ----------
    chances
        Probabilities, one row per sample.
    features
        Rows of length 1.
    known
        Features and probabilities of other samples, which count as neighbours and stay fixed.
    strength
        Strength of the smoothing; 0 changes nothing.
    neighbours
        Number of nearest neighbours that count.

    Examples
    --------
    >>> chances = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]])
    >>> features = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    >>> smooth(chances, features, neighbours=2).argmax(dim=1)
    tensor([0, 0, 0])
    """
    size = len(chances)
    fixed = chances[:0]
    others = features
    if known is not None:
        others, fixed = torch.cat([features, known[0]]), known[1]
    count = min(neighbours, len(others) - 1)
    if count < 1 or strength == 0:
        return chances
    similar = features @ others.T
    similar[:, :size].fill_diagonal_(-1.0)
    values, places = similar.topk(count, dim=1)
    near = torch.zeros_like(similar).scatter_(1, places, values.clamp(min=0))
    own = chances.clamp(min=_SMALLEST).log() + strength * near[:, size:] @ fixed
    inside = strength * near[:, :size]
    for _ in range(_ROUNDS):
        chances = (own + inside @ chances).softmax(dim=1)
    return chances
