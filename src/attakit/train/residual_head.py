"""A small convex classifier on top of a frozen network's logits.

The head is a multinomial logistic regression on features. The network's logits are its offset. So
without anchors, or with a very strong penalty, it answers exactly like the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from attakit.errors import ModelError, check_range
from attakit.targets import Targets
from attakit.train.likelihood import Likelihood, as_equal_rows
from attakit.train.newton import Array, DualProblem

_TOLERANCE = 1e-6
_APART = 1e-9  # copies of a row differ by this, so that each has its own coefficients
_ROUGH = 3e-2  # for cross-validation, where only the comparison counts


def fit_head(features: Tensor, offsets: Tensor, targets: Targets, *, penalty: float) -> Tensor:
    """Fit the head to convergence; return its weights, one column per class, the bias last.

    It minimises the sum over samples of weight · -log likelihood(softmax(offset + [features 1]·V))
    plus penalty/2 · |V|². Without open targets the problem is convex.

    Parameters
    ----------
    features
        One row per labelled sample.
    offsets
        The network's logits of the same samples.
    targets
        What people said about them.
    penalty
        How strongly the head is held to the network's answer; above 0.

    Examples
    --------
    >>> from attakit.nn.frozen_head import head_logits
    >>> features, offsets = torch.tensor([[1.0], [-1.0]]), torch.zeros(2, 2)
    >>> targets = Targets.of_labels(torch.tensor([0, 1]), classes=2)
    >>> weights = fit_head(features, offsets, targets, penalty=0.1)
    >>> head_logits(features, offsets, weights).argmax(dim=1)
    tensor([0, 1])
    """
    found = fit_coefficients(features, offsets, targets, penalty=penalty)
    return weights_of(features, found)


def fit_coefficients(
    features: Tensor,
    offsets: Tensor,
    targets: Targets,
    *,
    penalty: float,
    start: Tensor | None = None,
    tolerance: float = _TOLERANCE,
) -> Tensor:
    """Like `fit_head`, but return the weights as one coefficient per row and class.

    Parameters
    ----------
    features, offsets, targets, penalty
        As in `fit_head`.
    start
        Initial coefficients of the first rows, for example those of the last fit. They only save
        time: the result does not depend on them, up to the tolerance.
    tolerance
        Length of the gradient in the weights at the end.
    """
    check_range("fit_head", "penalty", penalty, above=0)
    gram, fixed = _gram(features, offsets), _array(offsets)
    first = np.zeros_like(fixed)
    if start is not None:
        first[: len(start)] = _array(start)[: len(first)]
    if len(first) == 0:
        return offsets.detach().double()
    problem = DualProblem(gram, fixed, Likelihood.of(targets), penalty)
    return torch.from_numpy(problem.solve(first, tolerance)).to(features.device)


def weights_of(features: Tensor, coefficients: Tensor) -> Tensor:
    """Return the weights of a head, the bias last, from coefficients of its rows."""
    bias = coefficients.sum(dim=0, keepdim=True)
    return torch.cat([features.detach().to(coefficients).T @ coefficients, bias])


def choose_penalty(
    features: Tensor,
    offsets: Tensor,
    targets: Targets,
    *,
    usual: float,
    others: Sequence[float],
    folds: int = 5,
) -> float:
    """Return the penalty with the best likelihood of held-out anchors, by cross-validation.

    Few anchors say little, and they are not a fair sample: people are asked about uncertain ones.
    So the usual penalty stays unless the best one beats it by more than two standard errors. Folds
    follow the order of the rows, so the result depends only on the arguments. Every anchor counts
    by its weight.

    Parameters
    ----------
    features, offsets, targets
        As in `fit_head`.
    usual
        The penalty to use unless cross-validation clearly prefers another.
    others
        Penalties to compare it with.
    folds
        Number of folds; each is held out once.

    Examples
    --------
    >>> features = torch.tensor([[1.0], [-1.0]]).repeat(20, 1)
    >>> targets = Targets.of_labels(torch.tensor([0, 1]).repeat(20), classes=2)
    >>> choose_penalty(features, torch.zeros(40, 2), targets, usual=100.0, others=[0.1])
    0.1
    """
    falling = sorted({usual, *others}, reverse=True)
    if len(features) < folds or not bool(targets.weights.any()):
        return usual
    likelihood = Likelihood.of(targets)
    found = held_out_logits(features, offsets, likelihood, falling, folds=folds)
    weights = likelihood.weights[:, 0]
    losses = [as_equal_rows(likelihood.losses(logits), weights) for logits in found]
    best = int(np.mean(losses, axis=1).argmin())
    gain = losses[falling.index(usual)] - losses[best]
    error = gain.std() / len(gain) ** 0.5
    return falling[best] if gain.mean() > 2 * error else usual


def held_out_logits(
    features: Tensor,
    offsets: Tensor,
    likelihood: Likelihood,
    penalties: Sequence[float],
    *,
    folds: int = 5,
) -> Iterator[Array]:
    """Yield logits of anchors, for each penalty, by heads that were fitted without them.

    Parameters
    ----------
    features, offsets
        As in `fit_head`.
    likelihood
        What people said about the anchors.
    penalties
        The penalties to fit with. Each fit begins with the one before, so similar ones in a row
        are quick.
    folds
        Parts; each is held out once.
    """
    gram, fixed = _gram(features, offsets), _array(offsets)
    held_out = np.arange(len(fixed))[:, None] % folds == np.arange(folds)
    several = np.repeat(fixed[:, None], folds, axis=1)
    solution = np.zeros_like(several)
    for penalty in penalties:
        problem = DualProblem(gram, several, likelihood.folded(held_out), penalty)
        solution = problem.solve(solution, _ROUGH)
        yield (several + problem.times_gram(solution))[held_out]


def _gram(features: Tensor, offsets: Tensor) -> Array:
    """Return the inner products of the rows, each with a 1 for the bias."""
    rows = _array(features)
    found: Array = rows @ rows.T + 1
    found[np.diag_indices_from(found)] *= 1 + _APART
    if not (np.isfinite(found).all() and bool(offsets.isfinite().all())):
        raise ModelError("fit_head: features and offsets must be finite, got NaN or infinity.")
    return found


def _array(tensor: Tensor) -> Array:
    found: Array = tensor.detach().double().cpu().numpy()
    return found
