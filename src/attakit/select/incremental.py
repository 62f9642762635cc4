"""Incremental clustering: ask about what the known samples do not cover yet.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 4.2 and Algorithm 2. https://arxiv.org/abs/2404.05094

What the paper leaves open, and the choice here:

- Line 10 of Algorithm 2 adds "# sample of cluster / # anchor in cluster" to each anchor. It does
  not say whether the anchors are samples too. The text does: the increase comes from the new
  samples. So only those count, and weight is conserved: the sum of all weights equals the number
  of samples absorbed.
- "The closest sample to the centroid" is searched among the members of the cluster. Two members
  of equal weight are equally close. The earlier one is asked about, so that rounding does not
  decide.
- If fewer questions are allowed than there are new clusters, the heaviest clusters come first.
  Samples of the others are dropped, and their weight with them.
- In the paper the number of clusters grows by k per step, and every new cluster asks. That is one
  setting, `cluster_growth`. Without it there are as many clusters as known samples plus questions,
  so that the number of new clusters is at least the number of due questions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import SettingError, check_count, check_range
from attakit.queries import SampleId
from attakit.randomness import derived_seed
from attakit.records import Rows, Selection
from attakit.select.kmeans import Clustering, Partition, first_nearest, squared_distances
from attakit.select.label_rate import whole
from attakit.select.small_kmeans import SmallKMeans

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pick:
    """The candidate to ask about for a new cluster, and the weight of that cluster."""

    sample: SampleId
    position: int
    mass: float


@dataclass(frozen=True, slots=True)
class Clusters:
    """The result of clustering known and new samples together."""

    picks: tuple[Pick, ...]  # for every new cluster, heaviest first
    grown: dict[SampleId, float]  # new weights of known samples
    labels: dict[SampleId, int]  # cluster number of every sample


class IncrementalClustering:
    """Clusters known and new samples together, and asks about clusters without a known sample.

    Parameters
    ----------
    cluster_growth
        As in the paper: add this many clusters per step (its k), and ask about all new ones.
        Fractions add up. The clusters then set the pace, not a label rate.
    initial_clusters
        Number of clusters at step 0 if they grow: the paper's NC(0), 10 by default.
    inits
        Number of K-means starts; the best one counts.
    seed
        Seed of K-means.

    Examples
    --------
    >>> from attakit.records import Rows
    >>> def rows(*points):
    ...     names = tuple(f"at {point}" for point in points)
    ...     features = torch.tensor(points, dtype=torch.float32).reshape(-1, 1)
    ...     return Rows(names, features, torch.zeros(len(points), 2), torch.ones(len(points)))
    >>> selection = IncrementalClustering().select(rows(0, 1, 2, 50), rows(51), limit=1, step=0)
    >>> selection.samples, dict(selection.weights)
    (('at 1',), {'at 51': 2.0, 'at 1': 3.0})
    """

    def __init__(
        self,
        *,
        cluster_growth: float | None = None,
        initial_clusters: int | None = None,
        inits: int = 3,
        seed: int = 0,
    ) -> None:
        _check_growth(cluster_growth, initial_clusters)
        self.cluster_growth = cluster_growth
        self.initial_clusters = 10 if initial_clusters is None else initial_clusters
        self.seed = seed
        self.clustering: Clustering = SmallKMeans(inits=inits)

    @property
    def sets_pace(self) -> bool:
        """True if the growth of the clusters decides how many samples to ask about."""
        return self.cluster_growth is not None

    def cluster_count(self, step: int, known: int = 0, limit: int = 1) -> int:
        """NC(t): the number of clusters at a step.

        Examples
        --------
        >>> selector = IncrementalClustering(cluster_growth=0.5)
        >>> [selector.cluster_count(step) for step in range(4)]
        [10, 10, 11, 11]
        """
        if self.cluster_growth is None:
            return max(1, known + limit)
        return whole(self.initial_clusters + self.cluster_growth * step)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, heaviest cluster first, and spread weights."""
        if len(candidates) == 0:
            return Selection()
        if step == 0:
            self._warn_of_small_batches(len(candidates))
        found = self.cluster(candidates, known, limit, step)
        heaviest: dict[SampleId, float] = {}
        for pick in found.picks:
            heaviest.setdefault(pick.sample, pick.mass)
        chosen = dict(list(heaviest.items())[: max(limit, 0)])
        return Selection(tuple(chosen), found.grown | chosen, found.labels)

    def cluster(self, candidates: Rows, known: Rows, limit: int, step: int) -> Clusters:
        """Cluster known samples and candidates together. There is at least one candidate."""
        points, weights = _together(candidates, known)
        count = self.cluster_count(step, len(known), min(limit, len(candidates)))
        seed = derived_seed(self.seed, "select", step)
        found = self.clustering.partition(points, weights, count, seed)
        picks = self._picks(found, points, candidates, known)
        everyone = zip(known.samples + candidates.samples, found.labels.tolist(), strict=True)
        return Clusters(picks, self._grown(found, candidates, known), dict(everyone))

    def _warn_of_small_batches(self, candidates: int) -> None:
        if self.sets_pace and candidates < self.initial_clusters:
            log.warning(
                "The first step has %d uncertain samples for %d clusters, so it asks about each of "
                "them. With small batches this uses up the budget: collect samples in a buffer of "
                "about 100 (labels.buffer, or buffer=100 in adapt and run).",
                candidates,
                self.initial_clusters,
            )

    def _picks(
        self, found: Partition, points: Tensor, candidates: Rows, known: Rows
    ) -> tuple[Pick, ...]:
        """Return one candidate for every new cluster that has one, heaviest first."""
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
        """Return the position of the candidate to ask about for a cluster; None if there is none.

        Parameters
        ----------
        distances
            Distances of the known samples, then of the candidates, to the centroid.
        members
            Candidates of the cluster that may be asked about.
        askable
            Candidates of any cluster that may be asked about.
        """
        if not bool(members.any()):
            return None
        return first_nearest(distances[-len(askable) :].masked_fill(~members, torch.inf))

    def _grown(self, found: Partition, candidates: Rows, known: Rows) -> dict[SampleId, float]:
        """Return the weights of the known samples whose cluster gained weight."""
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
        """Return what each anchor of a cluster gains, from the weight of its new samples."""
        return gain / anchors


def _together(candidates: Rows, known: Rows) -> tuple[Tensor, Tensor]:
    """Return features and weights of the known samples, then of the candidates."""
    if len(known) == 0:
        return candidates.features, candidates.weights
    features = torch.cat([known.features.to(candidates.features), candidates.features])
    return features, torch.cat([known.weights.to(candidates.weights), candidates.weights])


def _new_clusters(found: Partition, known_count: int) -> Iterator[int]:
    old = set(found.labels[:known_count].tolist())
    return (cluster for cluster in range(len(found.centroids)) if cluster not in old)


def _check_growth(growth: float | None, initial: int | None) -> None:
    who = "IncrementalClustering"
    if growth is not None:
        check_range(who, "cluster_growth", growth, at_least=0)
    if initial is not None:
        check_count(who, "initial_clusters", initial, at_least=1)
        if growth is None:
            raise SettingError(
                f"{who}: initial_clusters = {initial} has no effect without cluster_growth. Give "
                "both, or leave both out: then [labels] sets the pace."
            )
