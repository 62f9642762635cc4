"""Weighted K-means with scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attakit.errors import ModelError, SettingError, check_count, check_range
from attakit.nn.one_thread import one_thread

if TYPE_CHECKING:
    from sklearn.cluster import KMeans

_TIE = 1e-3  # two points are equally near if their squared distances differ by less (relative)
_ROUNDING = 1e-6  # part of the largest squared distance that rounding leaves of a zero


@dataclass(frozen=True, slots=True)
class Partition:
    """Points in clusters. No cluster is empty.

    Parameters
    ----------
    labels
        Cluster number of every point, on the CPU.
    centroids
        Weighted mean of every cluster, on the points' device.
    objective
        Weighted sum of squared distances between points and their centroids.
    """

    labels: Tensor  # (points,)
    centroids: Tensor  # (clusters, dim)
    objective: float


class Clustering(Protocol):
    """Puts weighted points into clusters."""

    def partition(self, points: Tensor, weights: Tensor, count: int, seed: int) -> Partition:
        """Make at most `count` clusters; fewer if there are fewer distinct points.

        Points without weight do not shape clusters; they join the nearest one.
        """


class SklearnKMeans:
    """scikit-learn's K-means, on one thread.

    One thread, because the threads of scikit-learn and torch compete for the same cores, which
    makes both many times slower.

    Parameters
    ----------
    inits
        Number of starts from different seeds; the best one counts.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [1.0], [9.0]])
    >>> found = SklearnKMeans().partition(points, torch.ones(3), count=2, seed=0)
    >>> sorted(found.centroids.flatten().tolist())
    [0.5, 9.0]
    """

    def __init__(self, *, inits: int = 3) -> None:
        check_count("SklearnKMeans", "inits", inits, at_least=1)
        self.inits = inits

    def partition(self, points: Tensor, weights: Tensor, count: int, seed: int) -> Partition:
        """Make at most `count` clusters."""
        points, weights = check_points(points, weights, count)
        heavy = weights > 0
        found = self._fit(points[heavy].cpu().numpy(), weights[heavy].cpu().numpy(), count, seed)
        centroids = torch.from_numpy(found.cluster_centers_)
        labels = nearest_centroids(points.cpu(), centroids)
        labels[heavy.cpu()] = torch.from_numpy(found.labels_).long()
        return without_empty(labels, centroids.to(points), float(found.inertia_))

    def estimator(self, count: int, seed: int) -> KMeans:
        """Return the estimator that finds `count` clusters."""
        from sklearn.cluster import KMeans  # noqa: PLC0415, a second of every start

        return KMeans(count, n_init=self.inits, random_state=seed)

    def _fit(self, points: NDArray[Any], weights: NDArray[Any], count: int, seed: int) -> KMeans:
        from sklearn.exceptions import ConvergenceWarning  # noqa: PLC0415, a second of every start

        means = self.estimator(min(count, count_distinct(points)), seed)
        with one_thread(), warnings.catch_warnings():
            # Distinct points may coincide when their differences are squared.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return means.fit(points, sample_weight=weights)


def check_points(points: Tensor, weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Convert points and weights for clustering, or raise an error.

    Half precision becomes single; weights that are all zero become ones.
    """
    check_range("K-means", "count", count, at_least=1)
    if len(points) == 0:
        raise SettingError("K-means: there must be at least one point to cluster, got none.")
    points = points.detach()
    if points.dtype not in (torch.float32, torch.float64):
        points = points.float()
    bad = int((~points.square().sum(dim=1).isfinite()).sum())
    if bad:
        raise ModelError(
            f"K-means: features must be finite, got NaN, infinite or overflowing values in {bad} "
            f"of {len(points)} rows. The model has diverged: lower its learning rate."
        )
    weights = weights.detach().to(points)
    if not bool((weights.isfinite() & (weights >= 0)).all()):
        raise SettingError("K-means: weights must be finite and not negative.")
    return points, weights if bool(weights.any()) else torch.ones_like(weights)


def count_distinct(points: NDArray[Any]) -> int:
    """Count the distinct rows.

    >>> count_distinct(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]]))
    2
    """
    # Comparing bytes is much faster than comparing rows; adding zero turns -0.0 into 0.0.
    return len({row.tobytes() for row in np.ascontiguousarray(points + 0.0)})


def squared_distances(points: Tensor, centroids: Tensor) -> Tensor:
    """Return the squared distance of every point to every centroid, as (points, clusters)."""
    # Cancellation grows with the distance from the origin, so the origin moves to the middle.
    middle = centroids.mean(dim=0)
    points, centroids = points - middle, centroids - middle
    squares = points.square().sum(dim=1, keepdim=True) + centroids.square().sum(dim=1)
    return torch.addmm(squares, points, centroids.T, alpha=-2).clamp(min=0)


def first_nearest(distances: Tensor) -> int:
    """Return the position of the smallest distance; the first of equal ones, despite rounding.

    >>> first_nearest(torch.tensor([9.0, 2.0000001, 2.0, torch.inf]))
    1
    """
    finite = distances[distances.isfinite()]
    smallest = finite.min()
    slack = _TIE * smallest + _ROUNDING * finite.max()
    return int((distances <= smallest + slack).nonzero()[0])


def nearest_centroids(points: Tensor, centroids: Tensor) -> Tensor:
    """Return the number of the nearest centroid of every point."""
    return squared_distances(points, centroids).argmin(dim=1)


def without_empty(labels: Tensor, centroids: Tensor, objective: float) -> Partition:
    """Number the clusters that have members from zero, in order, and drop the others."""
    used = torch.bincount(labels.cpu(), minlength=len(centroids)) > 0
    renumbered = (used.cumsum(dim=0) - 1)[labels.cpu()]
    return Partition(renumbered, centroids[used.to(centroids.device)], objective)
