"""A small convex classifier on top of a frozen network's logits.

The head is a multinomial logistic regression on features. The network's logits are its offset, so
that without anchors, or with a very strong penalty, it answers exactly as the network does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import ModelError, check_range
from attakit.targets import Targets
from attakit.train.newton import minimise

_RANK = 1e-12  # directions with a smaller share of the largest eigenvalue are rounding noise
_TOLERANCE = 1e-6
_ROUGH = 1e-2  # for cross-validation, where only the comparison counts


def fit_head(
    features: Tensor,
    offsets: Tensor,
    targets: Targets,
    *,
    penalty: float,
    start: Tensor | None = None,
) -> Tensor:
    """Fit the head to convergence; return its weights, one column per class, the bias last.

    It minimises the sum over samples of weight · -log likelihood(softmax(offset + [features 1]·V))
    plus penalty/2 · |V|². Without open targets the problem is convex, so the result depends on the
    arguments alone and not on `start`, up to the solver's tolerance.

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
    start
        Weights to begin with, for example those of the last fit. They only save time.

    Examples
    --------
    >>> from attakit.nn.frozen_head import head_logits
    >>> features, offsets = torch.tensor([[1.0], [-1.0]]), torch.zeros(2, 2)
    >>> targets = Targets.of_labels(torch.tensor([0, 1]), classes=2)
    >>> weights = fit_head(features, offsets, targets, penalty=0.1)
    >>> head_logits(features, offsets, weights).argmax(dim=1)
    tensor([0, 1])
    """
    check_range("fit_head", "penalty", penalty, above=0)
    problem = _Problem.of(features, offsets)
    first = None if start is None else problem.directions.T @ start.to(problem.directions)
    return problem.directions @ problem.solve(targets, penalty, _TOLERANCE, first)


def choose_penalty(
    features: Tensor,
    offsets: Tensor,
    targets: Targets,
    *,
    usual: float,
    others: Sequence[float],
    folds: int = 5,
) -> float:
    """The penalty with the best likelihood of held-out anchors, by cross-validation.

    Few anchors say little, and they are not a fair sample: people are asked about unsure ones. So
    the usual penalty stays unless the best one beats it by more than two standard errors. Fold
    numbers go round in the order of the rows, so the result depends on the arguments alone.

    Parameters
    ----------
    features, offsets, targets
        As in `fit_head`.
    usual
        The penalty to take where cross-validation does not clearly speak for another.
    others
        Penalties to compare it with.
    folds
        Parts; each is held out once.

    Examples
    --------
    >>> features = torch.tensor([[1.0], [-1.0]]).repeat(20, 1)
    >>> targets = Targets.of_labels(torch.tensor([0, 1]).repeat(20), classes=2)
    >>> choose_penalty(features, torch.zeros(40, 2), targets, usual=100.0, others=[0.1])
    0.1
    """
    falling = sorted({usual, *others}, reverse=True)
    if len(features) < folds:
        return usual
    problem = _Problem.of(features, offsets)
    losses = problem.scores.new_zeros(len(falling), len(features))
    fold = torch.arange(len(features), device=features.device) % folds
    for part in range(folds):
        inside, outside = fold != part, fold == part
        training, held_out = problem.take(inside), problem.take(outside)
        solution = None
        for row, penalty in enumerate(falling):
            solution = training.solve(targets.take(inside), penalty, _ROUGH, solution)
            losses[row, outside] = targets.take(outside).losses(held_out.logits(solution))
    best = int(losses.mean(dim=1).argmin())
    gain = losses[falling.index(usual)] - losses[best]
    error = gain.std(unbiased=False) / len(features) ** 0.5
    return falling[best] if bool(gain.mean() > 2 * error) else usual


@dataclass(frozen=True, slots=True)
class _Problem:
    """The features in a basis of their own span.

    The optimum lies in the span of the rows, so with fewer anchors than features the search has as
    many dimensions as there are anchors. Nothing is approximated.
    """

    scores: Tensor  # (rows, rank): the rows in the basis
    directions: Tensor  # (features and bias, rank): orthonormal
    offsets: Tensor  # (rows, classes)

    @staticmethod
    def of(features: Tensor, offsets: Tensor) -> _Problem:
        rows = torch.cat([features, features.new_ones(len(features), 1)], dim=1).detach().double()
        if not bool(rows.isfinite().all() and offsets.isfinite().all()):
            raise ModelError("fit_head: features and offsets must be finite, got NaN or infinity.")
        few = len(rows) <= rows.shape[1]
        values, vectors = torch.linalg.eigh(rows @ rows.T if few else rows.T @ rows)
        kept = values > _RANK * values[-1:]
        directions = vectors[:, kept]
        if few:
            directions = rows.T @ (directions / values[kept].sqrt())
        return _Problem(rows @ directions, directions, offsets.detach().double())

    def take(self, places: Tensor) -> _Problem:
        return _Problem(self.scores[places], self.directions, self.offsets[places])

    def logits(self, solution: Tensor) -> Tensor:
        return self.offsets + self.scores @ solution

    def solve(
        self, targets: Targets, penalty: float, tolerance: float, start: Tensor | None
    ) -> Tensor:
        """Weights in the basis that minimise the penalised loss."""
        # In these units the curvature is about the same in every direction, which CG likes.
        usual = targets.weights @ self.scores.square() / self.offsets.shape[1]
        scale = (usual + penalty).rsqrt()[:, None]
        scores, ridge = self.scores * scale.T, penalty * scale.square()
        if start is None:
            start = self.scores.new_zeros(self.scores.shape[1], self.offsets.shape[1])

        def value(point: Tensor) -> Tensor:
            data = targets.weights @ targets.losses(self.offsets + scores @ point)
            return data + 0.5 * (ridge * point.square()).sum()

        def slope(point: Tensor) -> Tensor:
            return scores.T @ targets.slopes(self.offsets + scores @ point) + ridge * point

        def curvature(point: Tensor) -> Callable[[Tensor], Tensor]:
            along = targets.curvature(self.offsets + scores @ point)
            return lambda way: scores.T @ along(scores @ way) + ridge * way

        return minimise(value, slope, curvature, start / scale, tolerance) * scale
