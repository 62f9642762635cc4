"""Gaussian groups in a few directions, how to find them, and the card of source samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

_NOISE = 1e-2  # variance added in every direction; directions have about unit scale
_SMALLEST = 1e-6
_STARTS = 3  # seeds of a mixture; the best after some rounds counts
_TRIED = 4  # rounds for each
_HOPE = 0.3  # nats per sample that further rounds may gain
_ROUNDS = 30
_CONVERGED = 1e-3  # nats per sample


@dataclass(frozen=True, slots=True)
class Card:
    """Mean and covariance of the style vectors of source samples.

    >>> Card.of(np.array([[0.0], [2.0]])).mean.tolist()
    [1.0]
    """

    mean: Array  # (dim,)
    covariance: Array  # (dim, dim)

    @staticmethod
    def of(styles: Array) -> Card:
        """Make the card of samples, one row each."""
        return Card(styles.mean(axis=0), np.atleast_2d(np.cov(styles.T, bias=True)))


@dataclass(frozen=True, slots=True)
class Projection:
    """The directions in which rows differ most, relative to their spread."""

    centre: Array  # (dim,)
    scale: Array  # (dim,)
    directions: Array  # (dim, directions)

    @staticmethod
    def of(rows: Array, card: Card | None, directions: int) -> Projection:
        """Return the main directions of rows, and equally of source samples if known."""
        own = Card.of(rows)
        centre, covariance = own.mean, own.covariance
        if card is not None:
            gap = (own.mean - card.mean) / 2
            centre = (own.mean + card.mean) / 2
            covariance = (own.covariance + card.covariance) / 2 + np.outer(gap, gap)
        scale = np.sqrt(np.diag(covariance)) + _SMALLEST
        _, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
        return Projection(centre, scale, vectors[:, ::-1][:, :directions])

    def __call__(self, rows: Array) -> Array:
        found: Array = ((rows - self.centre) / self.scale) @ self.directions
        return found


@dataclass(frozen=True, slots=True)
class Gaussians:
    """A mixture of Gaussians."""

    weights: Array  # (groups,)
    means: Array  # (groups, directions)
    covariances: Array  # (groups, directions, directions)

    @staticmethod
    def of_card(card: Card, projection: Projection) -> Gaussians:
        """Describe source samples as one Gaussian in the directions of a projection."""
        turned = projection.directions / projection.scale[:, None]
        covariance = turned.T @ card.covariance @ turned + _NOISE * np.eye(turned.shape[1])
        return Gaussians(np.ones(1), projection(card.mean[None]), covariance[None])

    @staticmethod
    def fitted(rows: Array) -> Gaussians:
        """Return one Gaussian with the mean and covariance of rows."""
        found = Card.of(rows)
        covariance = found.covariance + _NOISE * np.eye(rows.shape[1])
        return Gaussians(np.ones(1), found.mean[None], covariance[None])

    @staticmethod
    def of_members(members: Array, rows: Array) -> Gaussians:
        """Return the mixture whose groups have these members; rows of `members` add up to 1."""
        return _of_members(members, rows, _squares(rows))

    def members(self, rows: Array) -> Array:
        """Return how much each row belongs to each group; rows of the result add up to 1."""
        joint = self.joint(rows)
        found: Array = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        return found

    def likelihoods(self, rows: Array) -> Array:
        """Return the log likelihood of each row."""
        found: Array = np.logaddexp.reduce(self.joint(rows), axis=1)
        return found

    def joint(self, rows: Array) -> Array:
        """Return the log density of each row in each group, times the weight of the group."""
        roots = np.linalg.cholesky(self.covariances)
        volumes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constant = np.log(self.weights) - volumes - rows.shape[1] / 2 * np.log(2 * np.pi)
        gaps = (rows - self.means[:, None]) @ np.linalg.inv(roots).transpose(0, 2, 1)
        joint: Array = constant - np.square(gaps).sum(axis=2).T / 2
        return joint


def best_mixture(rows: Array, most: int, gain: float) -> Gaussians:
    """Return the mixture with the best Bayesian information criterion.

    Parameters
    ----------
    rows
        One for each sample.
    most
        Maximum number of Gaussians.
    gain
        Nats per sample that another Gaussian must gain beyond the criterion.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 2))
    >>> len(best_mixture(np.concatenate([rows, rows + 20]), most=4, gain=0.3).weights)
    2
    """
    best = Gaussians.fitted(rows)
    lowest = _price(best, rows)
    squares = _squares(rows)
    for count in range(2, most + 1):
        found = _start(rows, squares, count)
        if _price(found, rows) + gain * (count - 1) < lowest + _HOPE:
            _, found = _improved(rows, squares, found, _ROUNDS)
        price = _price(found, rows) + gain * (count - 1)
        if price >= lowest:
            break
        best, lowest = found, price
    return best


def _price(found: Gaussians, rows: Array) -> float:
    """Return half of the Bayesian information criterion, per sample."""
    groups, directions = found.means.shape
    parameters = groups * (1 + directions * (directions + 3) / 2) - 1
    return float(parameters * np.log(len(rows)) / 2 / len(rows) - found.likelihoods(rows).mean())


def _start(rows: Array, squares: Array, count: int) -> Gaussians:
    """Return the best of some mixtures after a few rounds from different seeds."""
    random = np.random.default_rng(0)
    starts = [_seeded(rows, squares, count, random) for _ in range(_STARTS)]
    tried = [_improved(rows, squares, start, _TRIED) for start in starts]
    return max(tried, key=lambda each: each[0])[1]


def _improved(
    rows: Array, squares: Array, found: Gaussians, rounds: int
) -> tuple[float, Gaussians]:
    """Run expectation maximisation until it hardly gains; mean log-likelihood before the end."""
    before, now = -np.inf, -np.inf
    for _ in range(rounds):
        joint = found.joint(rows)
        likelihoods = np.logaddexp.reduce(joint, axis=1)
        before, now = now, float(likelihoods.mean())
        if now - before < _CONVERGED:
            break
        found = _of_members(np.exp(joint - likelihoods[:, None]), rows, squares)
    return now, found


def _squares(rows: Array) -> Array:
    """Return the products of all pairs of directions, for each row."""
    found: Array = (rows[:, :, None] * rows[:, None]).reshape(len(rows), -1)
    return found


def _of_members(members: Array, rows: Array, squares: Array) -> Gaussians:
    """Return the mixture whose groups have these members."""
    directions = rows.shape[1]
    mass = members.sum(axis=0) + _SMALLEST
    means = members.T @ rows / mass[:, None]
    covariances = (members.T @ squares / mass[:, None]).reshape(-1, directions, directions)
    covariances -= means[:, :, None] * means[:, None]
    return Gaussians(mass / mass.sum(), means, covariances + _NOISE * np.eye(directions))


def _seeded(rows: Array, squares: Array, count: int, random: np.random.Generator) -> Gaussians:
    """Return groups around rows that are far from each other (K-means++)."""
    distances: list[Array] = []
    chances = np.ones(len(rows))
    for _ in range(count):
        sums = chances.cumsum()
        seed = rows[np.searchsorted(sums[:-1], random.random() * sums[-1])]
        distances.append(np.square(rows - seed).sum(axis=1))
        chances = np.min(distances, axis=0) + _SMALLEST
    nearest = np.argmin(distances, axis=0)
    return _of_members(np.eye(count)[nearest], rows, squares)
