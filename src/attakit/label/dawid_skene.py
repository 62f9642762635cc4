"""Estimate how reliable each annotator is, from questions that several people answered.

Dawid and Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm",
Applied Statistics 28, 1979. Every annotator has a confusion matrix. With few answers a full matrix
says little, so its rows are shrunk towards an annotator who errs evenly. The rate of that annotator
is shrunk towards the team's. crowd-kit has this estimate too, but needs transformers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attakit.errors import LabelError, check_count

_ROUNDS, _TOLERANCE = 100, 1e-4
_TEAM = (3.0, 4.0)  # prior of the team: right answers, and all answers
_OWN = 4.0  # prior of an annotator: this many answers at the team's rate
_ROW = 40.0  # prior of a matrix row: this many answers at the annotator's rate
_MOST_ENTRIES = 4_000_000  # entries of all matrices together; beyond this everyone errs evenly

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Vote:
    """The class that one annotator gave in answer to one question."""

    question: Hashable
    annotator: str
    label: int


@dataclass(frozen=True, slots=True)
class Reliability:
    """Estimated share of an annotator's correct answers, and the number of answers behind it."""

    accuracy: float
    answers: int


@dataclass(frozen=True)
class Consensus:
    """The result of combining votes.

    Parameters
    ----------
    chances
        For every question, the probability of each class given all votes.
    annotators
        How reliable each annotator is.
    """

    chances: Mapping[Hashable, tuple[float, ...]]
    annotators: Mapping[str, Reliability]


def estimate_consensus(votes: Sequence[Vote], classes: int) -> Consensus:
    """Estimate with expectation maximisation the class of each question and whom to trust.

    Parameters
    ----------
    votes
        At most one for each question and annotator.
    classes
        How many classes there are.

    Examples
    --------
    Ada and Bob agree with each other, and Eve with neither, so one of them outvotes Eve:

    >>> votes = [Vote(n, who, n % 2) for n in range(20) for who in ("Ada", "Bob")]
    >>> votes += [Vote(n, "Eve", 0) for n in range(20)]
    >>> votes += [Vote("new", "Ada", 1), Vote("new", "Eve", 0)]
    >>> found = estimate_consensus(votes, classes=2)
    >>> found.chances["new"][1] > 0.8
    True
    >>> found.annotators["Ada"].accuracy > 0.9 > 0.6 > found.annotators["Eve"].accuracy
    True
    """
    check_count("estimate_consensus", "classes", classes, at_least=2)
    if not votes:
        return Consensus({}, {})
    table = _Table(votes, classes)
    chances = table.shares()
    for _ in range(_ROUNDS):
        before = chances
        chances = table.expect(chances)
        if np.abs(chances - before).max() < _TOLERANCE:
            break
    rates = table.rates(chances)
    return Consensus(
        {name: tuple(row) for name, row in zip(table.questions, chances.tolist(), strict=True)},
        {
            name: Reliability(float(rate), int(count))
            for name, rate, count in zip(table.annotators, rates, table.counts, strict=True)
        },
    )


def weighted_class(chances: Sequence[float]) -> tuple[int, float]:
    """Return the most likely class and its weight: 0 is no better than chance, 1 is certain.

    >>> weighted_class([0.1, 0.9])
    (1, 0.8)
    """
    likeliest, chance = max(chances), 1 / len(chances)
    return list(chances).index(likeliest), max(0.0, (likeliest - chance) / (1 - chance))


class _Table:
    """Votes as arrays, and the two steps of the estimation."""

    def __init__(self, votes: Sequence[Vote], classes: int) -> None:
        self.classes = classes
        self.questions = list(dict.fromkeys(vote.question for vote in votes))
        self.annotators = list(dict.fromkeys(vote.annotator for vote in votes))
        places = {name: place for place, name in enumerate(self.questions)}
        people = {name: place for place, name in enumerate(self.annotators)}
        self.asked = np.array([places[vote.question] for vote in votes])
        self.who = np.array([people[vote.annotator] for vote in votes])
        self.said = np.array([vote.label for vote in votes])
        if self.said.min() < 0 or self.said.max() >= classes:
            raise LabelError(
                f"estimate_consensus: labels must be 0 to {classes - 1}, got "
                f"{sorted({*self.said.tolist()} - {*range(classes)})}."
            )
        self.counts = np.bincount(self.who, minlength=len(people))

    def shares(self) -> Array:
        """The initial estimate: the share of votes for each class."""
        found = np.zeros((len(self.questions), self.classes))
        np.add.at(found, (self.asked, self.said), 1.0)
        shares: Array = found / found.sum(axis=1, keepdims=True)
        return shares

    def rates(self, chances: Array) -> Array:
        """Return how often each annotator is right, given these class probabilities."""
        hits = self._hits(chances)
        rates: Array = (hits + _OWN * self._team(hits)) / (self.counts + _OWN)
        return rates

    def expect(self, chances: Array) -> Array:
        """Return the class probabilities, given matrices that fit the previous ones."""
        frequency = (chances.sum(axis=0) + 1) / (len(chances) + self.classes)
        logs = np.tile(np.log(frequency), (len(chances), 1))
        np.add.at(logs, self.asked, np.log(self._likelihoods(chances)))
        logs -= logs.max(axis=1, keepdims=True)
        found: Array = np.exp(logs)
        found /= found.sum(axis=1, keepdims=True)
        return found

    def _likelihoods(self, chances: Array) -> Array:
        """Return the probability of each vote, for each true class.

        It uses all other votes of the annotator. Including the vote itself would make everything
        look more certain than it is.
        """
        own = chances[self.asked]  # (votes, classes)
        hits = self._hits(chances)
        others = hits[self.who] - chances[self.asked, self.said]
        rates = (others + _OWN * self._team(hits)) / (self.counts[self.who] - 1 + _OWN)
        is_right = np.arange(self.classes) == self.said[:, None]
        wrong = (1 - rates) / (self.classes - 1)
        plain: Array = np.where(is_right, rates[:, None], wrong[:, None])
        if len(self.annotators) * self.classes**2 > _MOST_ENTRIES:
            return plain
        confused = np.zeros((len(self.annotators), self.classes, self.classes))
        np.add.at(confused, (self.who, self.said), own)  # by who, what they said, true class
        said = confused[self.who, self.said] - own
        seen = confused.sum(axis=1)[self.who] - own
        shrunk: Array = (_ROW * plain + said) / (_ROW + seen)
        return shrunk

    def _hits(self, chances: Array) -> Array:
        right = chances[self.asked, self.said]
        return np.bincount(self.who, right, len(self.annotators)).astype(np.float64)

    def _team(self, hits: Array) -> float:
        return float((hits.sum() + _TEAM[0]) / (len(self.said) + _TEAM[1]))
