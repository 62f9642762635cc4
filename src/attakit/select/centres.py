"""Cluster candidates and ask about the samples at the centres."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attakit.randomness import derived_seed
from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.kmeans import Clustering, Partition, first_nearest, squared_distances
from attakit.select.small_kmeans import SmallKMeans


class ClusterCentres:
    """Makes one cluster per question and asks about the sample nearest each centroid.

    Known samples are not clustered. Every weight is 1.

    Parameters
    ----------
    inits
        Number of K-means starts; the best one counts.
    seed
        Seed of K-means.

    Examples
    --------
    >>> features = torch.tensor([[0.0], [1.0], [2.0], [50.0]])
    >>> candidates = Rows(tuple("abcd"), features, torch.zeros(4, 2), torch.ones(4))
    >>> nothing = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> ClusterCentres().select(candidates, nothing, limit=2, step=0).samples
    ('b', 'd')
    """

    def __init__(
        self,
        *,
        inits: int = 3,
        seed: int = 0,
    ) -> None:
        self.clustering = SmallKMeans(inits=inits)
        self.seed = seed

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, starting with the largest cluster."""
        weights = torch.ones(len(candidates), device=candidates.features.device)
        seed = derived_seed(self.seed, "cluster centres", step)
        return choose_centres(candidates, known, weights, self.clustering, limit, seed)


def choose_centres(
    candidates: Rows, known: Rows, weights: Tensor, clustering: Clustering, count: int, seed: int
) -> Selection:
    """Choose the `count` candidates nearest the centroids of `count` weighted clusters."""
    positions = askable(candidates, known)
    count = min(count, len(positions))
    if count <= 0:
        return Selection()
    at = torch.tensor(positions, device=candidates.features.device)
    points, weights = candidates.features[at], weights[at]
    found = clustering.partition(points, weights, count, seed)
    distances = squared_distances(points.detach().to(found.centroids), found.centroids)
    nearest = nearest_distinct(distances[:, _heaviest_first(found, weights)], count)
    names = (candidates.samples[position] for position in positions)
    clusters = dict(zip(names, found.labels.tolist(), strict=True))
    return selection_of(candidates, [positions[place] for place in nearest], clusters)


def nearest_distinct(distances: Tensor, count: int) -> Sequence[int]:
    """Return the rows nearest the columns, one per column in turn, until `count` are found.

    If rows are equally near, the first counts. If a column's nearest row is taken, it gets the next
    nearest. If more rows are needed than there are columns, the columns are visited again.

    >>> nearest_distinct(torch.tensor([[0.0, 1.0], [4.0, 2.0], [9.0, 9.0]]), 3)
    [0, 1, 2]
    """
    taken: list[int] = []
    count = min(count, len(distances))
    free = distances.clone()
    while len(taken) < count:
        for column in range(min(distances.shape[1], count - len(taken))):
            taken.append(first_nearest(free[:, column]))
            free[taken[-1]] = torch.inf
    return taken


def _heaviest_first(found: Partition, weights: Tensor) -> Tensor:
    masses = torch.bincount(found.labels, weights.cpu().double(), minlength=len(found.centroids))
    order = masses.argsort(descending=True, stable=True)
    return order.to(found.centroids.device)
