"""Entropy of a prediction."""

from __future__ import annotations

import torch
from torch import Tensor


def softmax_entropy(logits: Tensor) -> Tensor:
    """Entropy, in nats, of the softmax of each row of logits.

    H(ŷ) = -Σ_c p(ŷ_c) log p(ŷ_c) (SimATTA, section 3.2).

    >>> softmax_entropy(torch.zeros(1, 3))
    tensor([1.0986])
    """
    # A class ruled out by a logit of minus infinity adds 0 · log 0 = 0, not "not a number".
    log_probabilities = logits.log_softmax(dim=-1).clamp_min(torch.finfo(logits.dtype).min)
    return -(log_probabilities.exp() * log_probabilities).sum(dim=-1)
