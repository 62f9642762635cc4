"""Correct answers for classes that are more or less frequent in a batch than in training.

Marsden, Döbler and Yang, "Universal test-time adaptation through weight ensembling, diversity
weighting, and prior correction", WACV 2024, section on prior correction.
"""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

PriorCorrection = Literal["logits", "probabilities", "none"]
PRIOR_CORRECTIONS = get_args(PriorCorrection)


def batch_prior(logits: Tensor) -> Tensor:
    """How frequent each class is in a batch, by the model's answers, smoothed.

    The mean probabilities p̂, of which the smaller ones are lifted: (p̂ + s) / (1 + s·C) with
    s = max(1/batch, 1/C) / max p̂.

    >>> import torch
    >>> batch_prior(torch.tensor([[9.0, 0.0], [9.0, 0.0]])).round(decimals=2)
    tensor([0.7500, 0.2500])
    """
    prior = logits.softmax(dim=1).mean(dim=0)
    count, classes = logits.shape
    smooth = max(1 / count, 1 / classes) / prior.max()
    return (prior + smooth) / (1 + smooth * classes)


def correct_prior(logits: Tensor, how: PriorCorrection) -> Tensor:
    """Let frequent classes of the batch win more often.

    Parameters
    ----------
    logits
        Answers to a batch.
    how
        "logits" multiplies logits with the prior, as the authors' code does; "probabilities"
        multiplies probabilities, as Bayes' rule does for a source with even classes; "none".
        The prior is taken relative to an even one, so that even classes change nothing.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[3.0, 0.0], [3.0, 0.0], [1.0, 1.1]])
    >>> correct_prior(logits, "logits").argmax(dim=1)
    tensor([0, 0, 0])
    """
    if how == "none" or len(logits) == 0:
        return logits
    relative = batch_prior(logits) * logits.shape[1]
    return logits * relative if how == "logits" else logits + relative.log()
