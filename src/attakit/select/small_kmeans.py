"""Weighted K-means for the few hundred points of a batch, in a millisecond."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attakit.nn.one_thread import one_thread
from attakit.select.kmeans import (
    Partition,
    SklearnKMeans,
    check_points,
    count_distinct,
    nearest_centroids,
    without_empty,
)

_MOST = 1000  # points whose inner products are held in memory
_ROUNDS = 100
_LIGHTEST = 1e-9  # part of the heaviest point; less counts as no weight


class SmallKMeans(SklearnKMeans):
    """K-means on the points' inner products, with all starts at once.

    Starts are drawn as in K-means++ and improved by Lloyd's algorithm, like in scikit-learn, which
    has much overhead for few points. For more than 1,000 points scikit-learn is used.

    Parameters
    ----------
    inits
        Number of starts from different seeds; the best one counts.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [1.0], [9.0]])
    >>> found = SmallKMeans().partition(points, torch.ones(3), count=2, seed=0)
    >>> sorted(found.centroids.flatten().tolist())
    [0.5, 9.0]
    """

    def partition(self, points: Tensor, weights: Tensor, count: int, seed: int) -> Partition:
        """Make at most `count` clusters."""
        if len(points) > _MOST:
            return super().partition(points, weights, count, seed)
        points, weights = check_points(points, weights, count)
        heavy = (weights > _LIGHTEST * weights.max()).cpu()
        rows, masses = points.cpu()[heavy].numpy(), weights.cpu()[heavy].numpy()
        if len(np.unique(rows[:, 0])) < count:  # otherwise there are enough distinct points
            count = min(count, count_distinct(rows))
        with one_thread():
            found, objective = _best_labels(rows, masses, count, self.inits, seed)
        centroids = torch.from_numpy(_shares(found[None], masses, count).T @ rows).to(points)
        labels = torch.from_numpy(found)
        if len(rows) < len(points):
            used = np.bincount(found, minlength=count) > 0
            centroids = centroids[torch.from_numpy(used)]
            labels = nearest_centroids(points.cpu(), centroids.cpu())
            labels[heavy] = torch.from_numpy((used.cumsum() - 1)[found])
        return without_empty(labels, centroids, objective)


def _best_labels(
    rows: NDArray[Any], masses: NDArray[Any], count: int, inits: int, seed: int
) -> tuple[NDArray[np.intp], float]:
    """Return the cluster numbers of the best start, and its objective."""
    rows = rows - rows.mean(axis=0)  # against cancellation
    gram = rows @ rows.T
    random = np.random.default_rng(seed)
    labels = _nearest_seeds(gram, masses, count, inits, random)
    for _ in range(_ROUNDS):
        before, distances = labels, _distances(gram, _shares(labels, masses, count), inits)
        labels = distances.argmin(axis=2)
        if np.array_equal(before, labels):
            break
    distances = _distances(gram, _shares(labels, masses, count), inits)
    own = np.take_along_axis(distances, labels[:, :, None], axis=2)[:, :, 0].clip(0)
    objectives = own @ masses
    best = int(objectives.argmin())
    return labels[best], float(objectives[best])


def _nearest_seeds(
    gram: NDArray[Any],
    masses: NDArray[Any],
    count: int,
    inits: int,
    random: np.random.Generator,
) -> NDArray[np.intp]:
    """Draw seeds far from each other, and return each point's nearest seed: (inits, points).

    Of several draws for a seed, the most useful one counts (greedy K-means++).
    """
    squares = gram.diagonal()
    labels = np.zeros((inits, len(gram)), dtype=np.intp)
    nearest = np.full((inits, len(gram)), np.inf)
    chances = np.broadcast_to(masses, nearest.shape).astype(float)
    starts, tries = np.arange(inits), 2 + int(math.log(count))
    for number in range(count):
        drawn = _draw(chances, tries if number else 1, random)
        distances = (squares[drawn][:, :, None] + squares - 2 * gram[drawn]).clip(0)
        distances = np.minimum(distances, nearest[:, None])
        best = (distances @ masses).argmin(axis=1)
        lower = distances[starts, best]
        labels[lower < nearest] = number
        nearest, chances = lower, lower * masses
    return labels


def _draw(chances: NDArray[Any], count: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw columns of each row in proportion to its entries."""
    sums = chances.cumsum(axis=1)
    marks = random.random((len(chances), count)) * sums[:, -1:]
    found: NDArray[np.intp] = (sums[:, None] <= marks[:, :, None]).sum(axis=2)
    return found.clip(max=chances.shape[1] - 1)


def _shares(labels: NDArray[np.intp], masses: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the weights of points in the mean of each cluster, for the clusters of all starts."""
    one_hot = (labels.T[:, :, None] == np.arange(count)).reshape(len(masses), -1)
    heavy = one_hot * masses[:, None]
    found: NDArray[Any] = heavy / heavy.sum(axis=0).clip(np.finfo(masses.dtype).tiny)
    return found


def _distances(gram: NDArray[Any], shares: NDArray[Any], inits: int) -> NDArray[Any]:
    """Return squared distances of points to cluster means: (inits, points, clusters)."""
    products = gram @ shares
    found = gram.diagonal()[:, None] - 2 * products + (shares * products).sum(axis=0)
    by_start: NDArray[Any] = found.reshape(len(gram), inits, -1).swapaxes(0, 1)
    return by_start
