"""Weighted K-means in torch, for features that live on a GPU."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from attakit.errors import check_count, check_range
from attakit.randomness import derived_seed
from attakit.select.kmeans import Partition, check_points, squared_distances, without_empty


class TorchKMeans:
    """Lloyd's algorithm on the device of the points.

    Nothing but the draw of the first centres happens on the CPU, from a generator of its own, so
    a seed gives the same centres on every device.

    Parameters
    ----------
    inits
        Starts from different seeds; the best one counts.
    iterations
        Upper bound on the rounds of one start.
    tolerance
        Stop when the summed squared shift of the centres falls to this multiple of the mean
        variance of the features.
    weighted_seeding
        Whether the first centres are drawn with regard to the weights.
    seeding_power
        2 draws a centre with probability proportional to the squared distance from those there
        are, the best of a few draws (k-means++). 1 imitates the public SimATTA code for GPUs: one
        draw, by plain distance.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [1.0], [9.0]])
    >>> found = TorchKMeans().partition(points, torch.ones(3), count=2, seed=0)
    >>> sorted(found.centroids.flatten().tolist())
    [0.5, 9.0]
    """

    def __init__(
        self,
        *,
        inits: int = 3,
        iterations: int = 300,
        tolerance: float = 1e-4,
        weighted_seeding: bool = True,
        seeding_power: int = 2,
    ) -> None:
        check_count("TorchKMeans", "inits", inits, at_least=1)
        check_count("TorchKMeans", "iterations", iterations, at_least=1)
        check_range("TorchKMeans", "tolerance", tolerance, at_least=0)
        check_count("TorchKMeans", "seeding_power", seeding_power, at_least=1, at_most=2)
        self.inits = inits
        self.iterations = iterations
        self.tolerance = tolerance
        self.weighted_seeding = weighted_seeding
        self.seeding_power = seeding_power

    @torch.no_grad()
    def partition(self, points: Tensor, weights: Tensor, count: int, seed: int) -> Partition:
        """Make at most `count` clusters."""
        points, weights = check_points(points, weights, count)
        starts = (self._start(points, weights, count, seed, init) for init in range(self.inits))
        best = min(
            (lloyd(points, weights, start, self.iterations, self.tolerance) for start in starts),
            key=lambda found: found.objective,
        )
        return without_empty(best.labels, best.centroids, best.objective)

    def _start(self, points: Tensor, weights: Tensor, count: int, seed: int, init: int) -> Tensor:
        draws = torch.Generator().manual_seed(derived_seed(seed, "k-means", init))
        # A point without weight is no centre, even where the seeding ignores the weights.
        mass = weights if self.weighted_seeding else (weights > 0).to(weights)
        return draw_centres(points, mass, count, self.seeding_power, draws)


def draw_centres(
    points: Tensor, mass: Tensor, count: int, power: int, draws: torch.Generator
) -> Tensor:
    """Draw first centres far from one another; fewer when the points run out.

    With power 2, greedy k-means++: of a few draws the one that lowers the objective most is taken
    (Arthur and Vassilvitskii, "k-means++: the advantages of careful seeding", 2007, section 4).
    """
    trials = 1 if power == 1 else 2 + int(math.log(count))
    chosen = _draw(mass, 1, draws)
    squares = _squares_to(points, chosen)[0]
    for _ in range(count - 1):
        chances = mass * squares.pow(power / 2)
        if not bool(chances.any()):
            break
        tried = _draw(chances, trials, draws)
        closer = torch.minimum(squares, _squares_to(points, tried))
        best = int((closer * mass).sum(dim=1).argmin())
        chosen = torch.cat([chosen, tried[best : best + 1]])
        squares = closer[best]
    return points[chosen]


class Settled(NamedTuple):
    """Where Lloyd's algorithm came to rest."""

    labels: Tensor
    centroids: Tensor
    objective: float


def lloyd(
    points: Tensor, weights: Tensor, centres: Tensor, iterations: int, tolerance: float
) -> Settled:
    """Move given centres to the means of their members until they rest.

    A cluster that lost its members starts again at the point farthest from its own centre.
    """
    enough = tolerance * float(points.var(dim=0, correction=0).mean())
    labels, squares = _assign(points, centres)
    for _ in range(iterations):
        labels = _refill(labels, squares * (weights > 0), len(centres))
        moved = _means(points, weights, labels, centres)
        shift = float((moved - centres).square().sum())
        centres = moved
        before, (labels, squares) = labels, _assign(points, centres)
        if shift <= enough or torch.equal(before, labels):
            break
    return Settled(labels, centres, float((squares * weights).sum()))


def _draw(chances: Tensor, count: int, draws: torch.Generator) -> Tensor:
    # Summed on the CPU: the order of a sum on a GPU may change from run to run.
    edges = chances.double().cpu().cumsum(dim=0)
    at = torch.rand(count, dtype=torch.float64, generator=draws) * edges[-1]
    found = torch.searchsorted(edges, at, right=True).clamp(max=len(edges) - 1)
    return found.to(chances.device)


def _squares_to(points: Tensor, chosen: Tensor) -> Tensor:
    # Differences first, so that a point is at distance zero from itself and never drawn twice.
    return torch.stack([(points - points[place]).square().sum(dim=1) for place in chosen])


def _assign(points: Tensor, centres: Tensor) -> tuple[Tensor, Tensor]:
    nearest = squared_distances(points, centres).min(dim=1)
    return nearest.indices, nearest.values


def _refill(labels: Tensor, squares: Tensor, count: int) -> Tensor:
    empty = (torch.bincount(labels.cpu(), minlength=count) == 0).nonzero().flatten()
    if len(empty) == 0:
        return labels
    farthest = squares.argsort(descending=True, stable=True)[: len(empty)]
    farthest = farthest[squares[farthest] > 0]
    refilled = labels.clone()
    refilled[farthest] = empty[: len(farthest)].to(labels)
    return refilled


def _means(points: Tensor, weights: Tensor, labels: Tensor, centres: Tensor) -> Tensor:
    # A product of matrices: scattered sums are not repeatable on a GPU.
    members = torch.nn.functional.one_hot(labels, len(centres)).to(points) * weights[:, None]
    masses = members.sum(dim=0)[:, None]
    means = (members.T @ points) / masses.clamp(min=torch.finfo(points.dtype).tiny)
    return torch.where(masses > 0, means, centres)
