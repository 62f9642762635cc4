"""Incremental clustering: ask about what the known samples do not cover yet.

Gui, Li and Ji, "Active Test-Time Adaptation: Theoretical Analyses and An Algorithm", ICLR 2024,
section 4.2 and Algorithm 2. https://arxiv.org/abs/2404.05094

What the paper leaves open, and what is done here:

- Line 10 of Algorithm 2 adds "# sample of cluster / # anchor in cluster" to each anchor and does
  not say whether the anchors are samples too. The text does: the increase comes from the new
  samples. So by default only those count, and weight is conserved: all weights together equal the
  number of samples absorbed. `count_anchors=True` counts the anchors as well.
- "The closest sample to the centroid" is looked for among the members of the cluster;
  `nearest="any"` looks among all points.
- When fewer questions are allowed than there are new clusters, the heaviest clusters come first.
  Samples of the others are let go, and their weight with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import check_choice, check_count, check_range
from attakit.queries import SampleId
from attakit.randomness import derived_seed
from attakit.records import Rows, Selection
from attakit.select.backends import build_clustering
from attakit.select.kmeans import Partition, squared_distances
from attakit.select.pace import whole

NEAREST = ("member", "any")


@dataclass(frozen=True, slots=True)
class _Pick:
    """A candidate that speaks for a new cluster, and the weight of that cluster."""

    position: int
    mass: float


class IncrementalClustering:
    """Cluster known and new samples together; ask about clusters without a known sample.

    Parameters
    ----------
    initial_clusters
        Clusters at step 0: NC(0) of the paper.
    cluster_growth
        Clusters added per step: k of the paper. Fractions add up.
    kmeans
        "sklearn", or "torch" for features that live on a GPU.
    inits
        Starts of K-means; the best one counts.
    algorithm
        "lloyd" or "elkan", for scikit-learn only.
    weighted_seeding
        Whether K-means draws its first centres with regard to the weights.
    seeding_power
        2 draws first centres by squared distance, 1 by distance; for torch only.
    nearest
        Where to look for the sample nearest to a new centroid. "member": in the cluster. "any":
        among all points, as the public code does; a cluster whose centroid is nearest to a known
        sample is then passed over.
    duplicates
        Whether two clusters may ask about the same sample, which only "any" makes possible. Both
        copies then get the mean of the two weights.
    count_anchors
        Whether known samples count, next to new ones, in the weight that their cluster gains.
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
        kmeans: str = "sklearn",
        inits: int = 3,
        algorithm: str = "lloyd",
        weighted_seeding: bool = True,
        seeding_power: int = 2,
        nearest: str = "member",
        duplicates: bool = False,
        count_anchors: bool = False,
        seed: int = 0,
    ) -> None:
        who = "IncrementalClustering"
        check_count(who, "initial_clusters", initial_clusters, at_least=1)
        check_range(who, "cluster_growth", cluster_growth, at_least=0)
        check_choice(who, "nearest", nearest, NEAREST)
        self.initial_clusters = initial_clusters
        self.cluster_growth = cluster_growth
        self.nearest = nearest
        self.duplicates = duplicates
        self.count_anchors = count_anchors
        self.seed = seed
        self.clustering = build_clustering(
            who,
            kmeans,
            inits=inits,
            algorithm=algorithm,
            weighted_seeding=weighted_seeding,
            seeding_power=seeding_power,
        )

    def cluster_count(self, step: int) -> int:
        """NC(t): how many clusters to make at a step.

        >>> selector = IncrementalClustering(initial_clusters=10, cluster_growth=0.5)
        >>> [selector.cluster_count(step) for step in range(4)]
        [10, 10, 11, 11]
        """
        return whole(self.initial_clusters + self.cluster_growth * step)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, heaviest cluster first, and spread weights."""
        if len(candidates) == 0 and not (self.count_anchors and len(known)):
            return Selection()
        points, weights = _together(candidates, known)
        found = self.clustering.partition(
            points, weights, self.cluster_count(step), derived_seed(self.seed, "select", step)
        )
        picks = self._allowed(self._picks(found, points, candidates, known), candidates, limit)
        names = tuple(candidates.samples[pick.position] for pick in picks)
        masses: dict[SampleId, list[float]] = {}
        for name, pick in zip(names, picks, strict=True):
            masses.setdefault(name, []).append(pick.mass)
        chosen = {name: sum(several) / len(several) for name, several in masses.items()}
        everyone = zip(known.samples + candidates.samples, found.labels.tolist(), strict=True)
        return Selection(names, self._grown(found, candidates, known) | chosen, dict(everyone))

    def _picks(
        self, found: Partition, points: Tensor, candidates: Rows, known: Rows
    ) -> list[_Pick]:
        """One candidate for every new cluster that has one, heaviest first."""
        distances = squared_distances(points.detach().to(found.centroids), found.centroids).cpu()
        fresh = found.labels[len(known) :]
        covered = set(known.samples)
        askable = torch.tensor([name not in covered for name in candidates.samples])
        picks = []
        for cluster in _new_clusters(found, len(known)):
            members = fresh == cluster
            mass = float(candidates.weights[members.to(candidates.weights.device)].sum())
            position = self._speaker(distances[:, cluster], members & askable, askable)
            if position is not None:
                picks.append(_Pick(position, mass))
        return sorted(picks, key=lambda pick: (-pick.mass, pick.position))

    def _speaker(self, distances: Tensor, members: Tensor, askable: Tensor) -> int | None:
        known_count = len(distances) - len(askable)
        if self.nearest == "any":
            position = int(distances.argmin()) - known_count
            return position if position >= 0 and bool(askable[position]) else None
        if not bool(members.any()):
            return None
        return int(distances[known_count:].masked_fill(~members, torch.inf).argmin())

    def _allowed(self, picks: list[_Pick], candidates: Rows, limit: int) -> list[_Pick]:
        """The first picks, without repeated names unless duplicates are wanted."""
        if not self.duplicates:
            first: dict[SampleId, _Pick] = {}
            for pick in picks:
                first.setdefault(candidates.samples[pick.position], pick)
            picks = list(first.values())
        return picks[: max(limit, 0)]

    def _grown(self, found: Partition, candidates: Rows, known: Rows) -> dict[SampleId, float]:
        """Weights of the known samples whose cluster gained something."""
        labels, fresh = found.labels[: len(known)], found.labels[len(known) :]
        count = len(found.centroids)
        anchors = torch.bincount(labels, minlength=count).double()
        gain = torch.bincount(fresh, candidates.weights.cpu().double(), minlength=count)
        share = (gain + anchors if self.count_anchors else gain) / anchors
        gains = share[labels].tolist()
        old = known.weights.tolist()
        return {
            name: weight + more
            for name, weight, more in zip(known.samples, old, gains, strict=True)
            if more > 0
        }


def _together(candidates: Rows, known: Rows) -> tuple[Tensor, Tensor]:
    """Features and weights of the known samples, then of the candidates."""
    if len(known) == 0:
        return candidates.features, candidates.weights
    if len(candidates) == 0:
        return known.features, known.weights
    features = torch.cat([known.features.to(candidates.features), candidates.features])
    return features, torch.cat([known.weights.to(candidates.weights), candidates.weights])


def _new_clusters(found: Partition, known_count: int) -> Iterator[int]:
    old = set(found.labels[:known_count].tolist())
    return (cluster for cluster in range(len(found.centroids)) if cluster not in old)
