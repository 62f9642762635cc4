"""Gaussian groups in a few directions, how they are found, and the card of source samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

Array = np.ndarray[Any, np.dtype[np.float64]]

_NOISE = 1e-2  # variance that is added in every direction; directions have about unit scale
_SMALLEST = 1e-6


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
        """The card of samples, one row each."""
        return Card(styles.mean(axis=0), np.atleast_2d(np.cov(styles.T, bias=True)))


@dataclass(frozen=True, slots=True)
class Projection:
    """The directions in which rows differ most, in units of their spread."""

    centre: Array  # (dim,)
    scale: Array  # (dim,)
    directions: Array  # (dim, directions)

    @staticmethod
    def of(rows: Array, card: Card | None, directions: int) -> Projection:
        """Principal directions of rows, and of source samples with the same weight if known."""
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
        """Source samples as one Gaussian in the directions of a projection."""
        turned = projection.directions / projection.scale[:, None]
        covariance = turned.T @ card.covariance @ turned + _NOISE * np.eye(turned.shape[1])
        return Gaussians(np.ones(1), projection(card.mean[None]), covariance[None])

    @staticmethod
    def fitted(rows: Array) -> Gaussians:
        """One Gaussian with the mean and covariance of rows."""
        found = Card.of(rows)
        covariance = found.covariance + _NOISE * np.eye(rows.shape[1])
        return Gaussians(np.ones(1), found.mean[None], covariance[None])

    def members(self, rows: Array) -> Array:
        """How much each row belongs to each group; rows of the result add up to 1."""
        joint = self.joint(rows)
        found: Array = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
        return found

    def likelihoods(self, rows: Array) -> Array:
        """Log likelihood of each row."""
        found: Array = np.logaddexp.reduce(self.joint(rows), axis=1)
        return found

    def joint(self, rows: Array) -> Array:
        """Log of the density of each row in each group, times the weight of the group."""
        roots = np.linalg.cholesky(self.covariances)
        gaps = np.linalg.solve(roots, (rows[None] - self.means[:, None]).transpose(0, 2, 1))
        volumes = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
        constant = np.log(self.weights) - volumes - rows.shape[1] / 2 * np.log(2 * np.pi)
        joint: Array = (constant[:, None] - (gaps**2).sum(axis=1) / 2).T
        return joint


def best_mixture(rows: Array, most: int, gain: float) -> Gaussians:
    """The mixture whose number of Gaussians pays best by the Bayesian information criterion.

    Parameters
    ----------
    rows
        One for each sample.
    most
        Most Gaussians to try.
    gain
        Nats per sample that a further Gaussian must bring beyond what the criterion asks for.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 2))
    >>> len(best_mixture(np.concatenate([rows, rows + 20]), most=4, gain=0.3).weights)
    2
    """
    best, lowest = None, np.inf
    for count in range(1, most + 1):
        mixture = GaussianMixture(
            count, reg_covar=1e-2, init_params="k-means++", n_init=2, max_iter=50, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(rows)
        price = mixture.bic(rows) / 2 / len(rows) + gain * (count - 1)
        if price >= lowest:
            break
        best, lowest = mixture, price
    assert best is not None
    return Gaussians(best.weights_, best.means_, best.covariances_)
