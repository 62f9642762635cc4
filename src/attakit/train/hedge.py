"""How much of the network's own answer a prediction should keep next to the head's."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from attakit.targets import Targets
from attakit.train.likelihood import Likelihood
from attakit.train.newton import Array
from attakit.train.residual_head import held_out_logits

USUAL_HEDGE = 0.3
# What experience says before there are labels: shares of the network, and how likely they are.
_SHARES = (0.0, 0.15, USUAL_HEDGE, 0.45, 0.6, 0.75)
_PRIOR = (1.0, 2.0, 4.0, 2.0, 1.0, 0.5)
# Anchors are not a fair sample, since people are asked about unsure samples: they count half.
_TRUST = 0.5
_SMALLEST = 1e-9


def find_hedge(features: Tensor, offsets: Tensor, targets: Targets, *, penalty: float) -> float:
    """Average shares of the network's answer by how well they predict held-out anchors.

    Each share has a weight: its prior times the likelihood of the anchors, each predicted by a
    head that was fitted without it. The average changes smoothly with every anchor.

    Parameters
    ----------
    features, offsets, targets, penalty
        The anchors and the penalty of the head, as in `fit_head`.

    Examples
    --------
    >>> import torch
    >>> labels = torch.tensor([0, 1]).repeat(20)
    >>> targets = Targets.of_labels(labels, classes=2)
    >>> right = 4 * targets.shares.float()
    >>> noise = torch.linspace(-1, 1, 40)[:, None]
    >>> trusted = find_hedge(noise, right, targets, penalty=0.1)
    >>> misled = find_hedge(targets.shares.float(), 1 - right, targets, penalty=0.1)
    >>> misled < USUAL_HEDGE < trusted
    True
    """
    likelihood = Likelihood.of(targets)
    head = _chances(next(held_out_logits(features, offsets, likelihood, [penalty])))
    own = _chances(offsets.detach().double().cpu().numpy())
    losses = [_loss(likelihood, (1 - share) * head + share * own) for share in _SHARES]
    weights = np.array(_PRIOR) * np.exp(-_TRUST * (np.array(losses) - min(losses)))
    return float(weights @ _SHARES / weights.sum())


def _loss(likelihood: Likelihood, chances: Array) -> float:
    logits: Array = np.log(chances + _SMALLEST)
    return likelihood.value(logits)


def _chances(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Array = powers / powers.sum(axis=1, keepdims=True)
    return found
