"""The mix of classes in a batch, and answers that follow it."""

from __future__ import annotations

from torch import Tensor

_ROUNDS = 20
_BEFORE = 1.0  # samples of each class that every batch is thought to have


def with_class_mix(chances: Tensor) -> Tensor:
    """Correct answers for the mix of classes in their batch, which the answers themselves show.

    Classes that the batch has more of become likelier for each of its samples: expectation
    maximisation as in Saerens, Latinne and Decaestecker, Neural Computation 14(1), 2002.

    Parameters
    ----------
    chances
        Probabilities, one row per sample of a batch.

    Examples
    --------
    >>> import torch
    >>> chances = torch.tensor([[0.9, 0.1]] * 20 + [[0.45, 0.55]])
    >>> with_class_mix(chances)[-1].argmax().item()
    0
    """
    found = chances
    for _ in range(_ROUNDS):
        found = chances * (found.sum(dim=0) + _BEFORE)
        found = found / found.sum(dim=1, keepdim=True)
    return found
