"""Incremental clustering: ask about what the known samples do not cover yet.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 4.2 and Algorithm 2. https://arxiv.org/abs/2404.05094

What the paper leaves open, and what is done here:

- Line 10 of Algorithm 2 adds "# sample of cluster / # anchor in cluster" to each anchor and does
  not say whether the anchors are samples too. The text does: the increase comes from the new
  samples. So only those count, and weight is conserved: all weights together equal the number of
  samples absorbed.
- "The closest sample to the centroid" is looked for among the members of the cluster.
- When fewer questions are allowed than there are new clusters, the heaviest clusters come first.
  Samples of the others are let go, and their weight with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import check_count, check_range
from attakit.queries import SampleId
from attakit.randomness import derived_seed
from attakit.records import Rows, Selection
from attakit.select.kmeans import Clustering, Partition, SklearnKMeans, squared_distances
from attakit.select.pace import whole


@dataclass(frozen=True, slots=True)
class Pick:
    """A candidate that is asked about for a new cluster, and the weight of that cluster."""

    sample: SampleId
    position: int
    mass: float


@dataclass(frozen=True, slots=True)
class Clusters:
    """What clustering known and new samples together finds."""

    picks: tuple[Pick, ...]  # for every new cluster, heaviest first
    grown: dict[SampleId, float]  # new weights of known samples
    labels: dict[SampleId, int]  # cluster number of every sample


class IncrementalClustering:
    """Cluster known and new samples together; ask about clusters without a known sample.

    Parameters
    ----------
    initial_clusters
        Clusters at step 0: NC(0) of the paper.
    cluster_growth
        Clusters added per step: k of the paper. Fractions add up.
    inits
        Starts of K-means; the best one counts.
    seed
        Of K-means.

    Examples
    --------
    >>> from attakit.records import Rows
    >>> def rows(*points):
    ...     names = tuple(f"at {point}" for point in points)
    ...     features = torch.tensor(points, dtype=torch.float32).reshape(-1, 1)
    ...     return Rows(names, features, torch.zeros(len(points), 2), torch.ones(len(points)))
    >>> selector = IncrementalClustering(initial_clusters=2)
    >>> selection = selector.select(rows(0, 1, 2, 50), rows(51), limit=10, step=0)
    >>> selection.samples, dict(selection.weights)
    (('at 1',), {'at 51': 2.0, 'at 1': 3.0})
    """

    def __init__(
        self,
        *,
        initial_clusters: int = 10,
        cluster_growth: float = 1.0,
        inits: int = 3,
        seed: int = 0,
    ) -> None:
        who = "IncrementalClustering"
        check_count(who, "initial_clusters", initial_clusters, at_least=1)
        check_range(who, "cluster_growth", cluster_growth, at_least=0)
        self.initial_clusters = initial_clusters
        self.cluster_growth = cluster_growth
        self.seed = seed
        self.clustering: Clustering = SklearnKMeans(inits=inits)

    def cluster_count(self, step: int) -> int:
        """NC(t): how many clusters to make at a step.

        >>> selector = IncrementalClustering(initial_clusters=10, cluster_growth=0.5)
        >>> [selector.cluster_count(step) for step in range(4)]
        [10, 10, 11, 11]
        """
        return whole(self.initial_clusters + self.cluster_growth * step)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, heaviest cluster first, and spread weights."""
        if len(candidates) == 0:
            return Selection()
        found = self.cluster(candidates, known, step)
        heaviest: dict[SampleId, float] = {}
        for pick in found.picks:
            heaviest.setdefault(pick.sample, pick.mass)
        chosen = dict(list(heaviest.items())[: max(limit, 0)])
        return Selection(tuple(chosen), found.grown | chosen, found.labels)

    def cluster(self, candidates: Rows, known: Rows, step: int) -> Clusters:
        """Cluster known samples and candidates together; there is at least one candidate."""
        points, weights = _together(candidates, known)
        found = self.clustering.partition(
            points, weights, self.cluster_count(step), derived_seed(self.seed, "select", step)
        )
        picks = self._picks(found, points, candidates, known)
        everyone = zip(known.samples + candidates.samples, found.labels.tolist(), strict=True)
        return Clusters(picks, self._grown(found, candidates, known), dict(everyone))

    def _picks(
        self, found: Partition, points: Tensor, candidates: Rows, known: Rows
    ) -> tuple[Pick, ...]:
        """One candidate for every new cluster that has one, heaviest first."""
        distances = squared_distances(points.detach().to(found.centroids), found.centroids).cpu()
        fresh = found.labels[len(known) :]
        covered = set(known.samples)
        askable = torch.tensor([name not in covered for name in candidates.samples])
        picks = []
        for cluster in _new_clusters(found, len(known)):
            members = fresh == cluster
            mass = float(candidates.weights[members.to(candidates.weights.device)].sum())
            position = self._nearest(distances[:, cluster], members & askable, askable)
            if position is not None:
                picks.append(Pick(candidates.samples[position], position, mass))
        return tuple(sorted(picks, key=lambda pick: (-pick.mass, pick.position)))

    def _nearest(self, distances: Tensor, members: Tensor, askable: Tensor) -> int | None:
        """Position of the candidate to ask about for a cluster; None if there is none.

        Parameters
        ----------
        distances
            Of the known samples, then of the candidates, to the centroid.
        members
            Candidates of the cluster that may be asked about.
        askable
            Candidates of any cluster that may be asked about.
        """
        if not bool(members.any()):
            return None
        return int(distances[-len(askable) :].masked_fill(~members, torch.inf).argmin())

    def _grown(self, found: Partition, candidates: Rows, known: Rows) -> dict[SampleId, float]:
        """Weights of the known samples whose cluster gained something."""
        labels, fresh = found.labels[: len(known)], found.labels[len(known) :]
        count = len(found.centroids)
        anchors = torch.bincount(labels, minlength=count).double()
        gain = torch.bincount(fresh, candidates.weights.cpu().double(), minlength=count)
        gains = self._gain_per_anchor(gain, anchors)[labels].tolist()
        old = known.weights.tolist()
        return {
            name: weight + more
            for name, weight, more in zip(known.samples, old, gains, strict=True)
            if more > 0
        }

    def _gain_per_anchor(self, gain: Tensor, anchors: Tensor) -> Tensor:
        """What each anchor of a cluster gains, from the weight of new samples in the cluster."""
        return gain / anchors


def _together(candidates: Rows, known: Rows) -> tuple[Tensor, Tensor]:
    """Features and weights of the known samples, then of the candidates."""
    if len(known) == 0:
        return candidates.features, candidates.weights
    features = torch.cat([known.features.to(candidates.features), candidates.features])
    return features, torch.cat([known.weights.to(candidates.weights), candidates.weights])


def _new_clusters(found: Partition, known_count: int) -> Iterator[int]:
    old = set(found.labels[:known_count].tolist())
    return (cluster for cluster in range(len(found.centroids)) if cluster not in old)
