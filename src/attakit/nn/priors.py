"""Correct answers for class frequencies in a batch that differ from training.

Marsden, Döbler and Yang, "Universal test-time adaptation through weight ensembling, diversity
weighting, and prior correction", WACV 2024, section on prior correction.
"""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor

PriorCorrection = Literal["logits", "probabilities", "none"]
PRIOR_CORRECTIONS = get_args(PriorCorrection)


def batch_prior(logits: Tensor) -> Tensor:
    """Estimate how frequent each class is in a batch, from the model's answers, smoothed.

    The mean probabilities p̂, with the smaller ones raised: (p̂ + s) / (1 + s·C) with s =
    max(1/batch, 1/C) / max p̂.

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
        Logits of a batch.
    how
        "logits" multiplies logits by the prior, like the authors' code; "probabilities" multiplies
        probabilities, like Bayes' rule for a source with equal classes; "none". The prior is
        relative to a uniform one, so that equal classes change nothing.

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
