"""A world for the gate: drifted classes, a source model of a given accuracy, a learner, people.

All of it is arithmetic on clouds of points, so that hundreds of runs take a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Classes = NDArray[np.int64]

DIMENSIONS = 40
STRENGTH = 3.0  # labels that the source model counts for, in each class
_TRIED = 3000  # points to find the drift that gives the accuracy asked for


@dataclass
class World:
    """Classes are clouds around centres, as they are after the drift."""

    centres: Points
    source: Points  # the centres that the source model knows
    random: np.random.Generator

    @property
    def classes(self) -> int:
        return len(self.centres)

    def draw(self, count: int) -> tuple[Points, Classes]:
        """Draw points, and return them with their classes."""
        truth = self.random.integers(self.classes, size=count)
        return self.centres[truth] + self.random.normal(size=(count, DIMENSIONS)), truth


def make_world(classes: int, accuracy: float, random: np.random.Generator) -> World:
    """Make a world in which the source model has about the given accuracy.

    The further its centres move towards those of other classes, the less often it is right.
    """
    # Wide enough apart for 97 to 99 % at best.
    scale = {3: 0.62, 10: 0.75, 100: 0.95}.get(classes, 0.8)
    centres = scale * random.normal(size=(classes, DIMENSIONS))
    mix = random.dirichlet(np.ones(classes - 1), size=classes)
    others = np.stack([mix[kind] @ np.delete(centres, kind, axis=0) for kind in range(classes)])
    world = World(centres, centres, random)
    tried, truth = world.draw(_TRIED)
    low, high = 0.0, 1.0
    for _ in range(20):
        world.source = centres + (low + high) / 2 * (others - centres)
        if np.mean(guess(world.source, tried) == truth) > accuracy:
            low = (low + high) / 2
        else:
            high = (low + high) / 2
    return world


def guess(centres: Points, points: Points) -> Classes:
    """Return the class of the nearest centre."""
    return _logits(centres, points).argmax(axis=1)


def predict(centres: Points, points: Points) -> tuple[Classes, Points]:
    """Return the class of the nearest centre, and the entropy of that answer."""
    logits = _logits(centres, points)
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    entropies = -(chances * np.log(chances + 1e-12)).sum(axis=1)
    return logits.argmax(axis=1), entropies


def _logits(centres: Points, points: Points) -> Points:
    return points @ centres.T - 0.5 * (centres**2).sum(axis=1)


@dataclass
class Learner:
    """Moves the source model's centres towards what people say."""

    source: Points
    sums: Points
    counts: Points

    @classmethod
    def begin(cls, source: Points) -> Learner:
        return cls(source, STRENGTH * source, np.full(len(source), STRENGTH))

    def learn(self, points: Points, labels: Classes) -> None:
        np.add.at(self.sums, labels, points)
        np.add.at(self.counts, labels, 1.0)

    @property
    def centres(self) -> Points:
        return self.sums / self.counts[:, None]


Say = Callable[[Classes, Points], Classes]  # from the truth and the source model's entropies


def make_people(kind: str, world: World, random: np.random.Generator) -> Say:
    """Return a function that answers like one kind of people: see `PEOPLE`."""
    classes = world.classes
    code = _derangement(classes, random)
    unsure = _median_entropy(world)

    def wrong(truth: Classes, share: float) -> Classes:
        other = (truth + random.integers(1, classes, size=len(truth))) % classes
        return np.where(random.random(len(truth)) < share, other, truth)

    def one_of_three(truth: Classes) -> Classes:
        return np.where(random.integers(3, size=len(truth)) == 0, code[truth], truth)

    def sly(truth: Classes, entropies: Points) -> Classes:
        return np.where(entropies > unsure, code[truth], truth)

    ways: dict[str, Say] = {
        "honest": lambda truth, _: truth,
        "10 % wrong": lambda truth, _: wrong(truth, 0.1),
        "random": lambda truth, _: random.integers(classes, size=len(truth)),
        "always the same": lambda truth, _: np.zeros_like(truth),
        "wrong code": lambda truth, _: code[truth],
        "one of three with a wrong code": lambda truth, _: one_of_three(truth),
        "wrong code where the source is unsure": sly,
    }
    return ways[kind]


PEOPLE = (
    "honest",
    "10 % wrong",
    "random",
    "always the same",
    "wrong code",
    "one of three with a wrong code",
    "wrong code where the source is unsure",
)


def _median_entropy(world: World) -> float:
    """Return the entropy above which the source model counts as unsure."""
    points, _ = replace(world, random=np.random.default_rng(0)).draw(_TRIED)
    return float(np.median(predict(world.source, points)[1]))


def _derangement(classes: int, random: np.random.Generator) -> Classes:
    """Return another class for each class: a permutation that leaves none in its place."""
    while True:
        order = random.permutation(classes)
        if not np.any(order == np.arange(classes)):
            return order
