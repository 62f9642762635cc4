"""Entropy of a prediction, and the cross-entropy of two."""

from __future__ import annotations

import torch
from torch import Tensor


def softmax_entropy(logits: Tensor) -> Tensor:
    """Entropy, in nats, of the softmax of each row of logits.

    H(ŷ) = -Σ_c p(ŷ_c) log p(ŷ_c) (SimATTA, section 3.2).

    Examples
    --------
    >>> softmax_entropy(torch.zeros(1, 3))
    tensor([1.0986])
    """
    # A class excluded by a logit of minus infinity adds 0 · log 0 = 0, not NaN.
    log_probabilities = logits.log_softmax(dim=-1).clamp_min(torch.finfo(logits.dtype).min)
    return -(log_probabilities.exp() * log_probabilities).sum(dim=-1)


def symmetric_cross_entropy(one: Tensor, other: Tensor) -> Tensor:
    """Half the cross-entropy of each of two rows of logits against the other.

    -½ Σ_c p_c log q_c - ½ Σ_c q_c log p_c, with gradients into both (Wang et al., "Symmetric cross
    entropy for robust learning with noisy labels", ICCV 2019, with both weights ½).

    Examples
    --------
    >>> symmetric_cross_entropy(torch.zeros(1, 3), torch.zeros(1, 3))
    tensor([1.0986])
    """
    # As in the entropy, an excluded class must not give 0 · ∞.
    lowest = torch.finfo(one.dtype).min
    logs = [logits.log_softmax(dim=-1).clamp_min(lowest) for logits in (one, other)]
    return -0.5 * (logs[0].exp() * logs[1] + logs[1].exp() * logs[0]).sum(dim=-1)
