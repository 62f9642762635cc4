"""Check from their answers whether people can be trusted.

Answers alone cannot distinguish honest people from people who all apply the same wrong code, such
as "cat" for every dog. So the gate needs outside evidence. People must agree with the source model
more often than chance or, if several answer each question, with each other.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attakit.service.learner.sequences import (
    Counts,
    count_needed,
    log_dependence,
    log_e_path,
    log_e_value,
    log_mean_exp,
)

GROUPS = (1.0, 0.5, 0.25)  # shares of the answers: all, and those where the source model is surest
HALF = 0.5  # people must be right on more than this share of known examples
SURE_SHARE = 0.5  # share of the answers in the agreement shown to people


@dataclass(frozen=True, slots=True)
class Opinion:
    """What people say about a sample, and what the source model said when they were asked."""

    label: int | None  # None: people say that no class fits
    guess: int
    entropy: float
    audited: bool = True  # False if the method chose the sample, so it is not a fair sample


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often people agree with the source model, and how far that is from chance."""

    share: float  # share of agreement among the newest answers
    sure_share: float  # where the source model is surer than for about half of the earlier samples
    renamed_share: float  # agreement if each class had the name that people mostly use
    count: int  # number of newest answers
    least: float  # the agreement to exceed: chance plus a little
    log_e: float  # log of the greatest e-value ever against "at most that"
    log_e_below: float  # log of the newest answers' e-value against "at least chance"
    log_e_renamed: float  # log of their e-value against "renamed classes fit no better"
    groups: tuple[Counts, ...] = ()

    def missing(self, confidence: float) -> int | None:
        """Estimate how many more answers are needed; None if such answers are never enough."""
        # Each group has only a part of the money, so it must win that much more.
        each = 1 - (1 - confidence) / len(self.groups)
        totals = [
            math.ceil(needed / share)
            for share, seen in zip(GROUPS, self.groups, strict=True)
            if sum(seen.values())
            and (needed := count_needed(seen, self.least, 0.0, each)) is not None
        ]
        return max(1, min(totals) - round(sum(self.groups[0].values()))) if totals else None


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """How often people are right on known examples."""

    right: int
    count: int
    log_e: float  # log of the greatest e-value ever against "right on half of them at most"
    log_e_below: float  # log of the e-value against "right on half of them at least"

    def missing(self, confidence: float, left: int, share: float) -> int | None:
        """Estimate how many more answers are needed, if a share of them is about known examples.

        None if too few examples are left, or if such answers are never enough.
        """
        seen = {1.0: self.right, 0.0: self.count - self.right} if self.count else {1.0: 1.0}
        total = count_needed(seen, HALF, 0.0, confidence)
        if total is None or not share or total - self.count > left:
            return None
        return math.ceil(max(1, total - self.count) / share)


def known_answers(right: Sequence[bool]) -> KnownAnswers:
    """Measure how often people are right on known examples, oldest answer first.

    People who are right on more than half of them know the classes and use their own names. People
    who answer at random are not, and people who use another name for every class never are.

    >>> known_answers([True] * 5).log_e > math.log(10) > known_answers([True] * 4).log_e
    True
    """
    count, hits = len(right), sum(right)
    if not count:
        return KnownAnswers(0, 0, 0.0, 0.0)
    path = log_e_path([float(one) for one in right], HALF)
    below = log_e_value({-1.0: hits, 0.0: count - hits}, -HALF, -1.0)
    return KnownAnswers(hits, count, float(path.max()), below)


def source_agreement(
    said: Sequence[Opinion], classes: int, trust: float, window: int = 200
) -> Agreement:
    """Measure how often people agree with the source model, oldest answer first.

    People who answer at random agree with it on one of as many samples as there are classes. People
    who apply a wrong code agree less often, if the source model is any good. The money is split
    between three bets: all answers, the surer half and the surest quarter. A source model that is
    often wrong is mostly better where it is sure. A proof stays valid, so all answers count, from a
    single start: several starts would give luck several chances. Evidence against people uses the
    newest answers, because people change.

    Parameters
    ----------
    said
        Answers, oldest first.
    classes
        How many classes there are.
    trust
        The agreement to exceed, from 0 (chance) to 1 (always).
    window
        How many of the answers count as the newest.

    Examples
    --------
    >>> found = source_agreement([Opinion(1, 1, 0.1)] * 6, classes=10, trust=0.02)
    >>> found.log_e > math.log(10) > source_agreement([], 10, 0.02).log_e
    True
    """
    chance = 1 / classes
    least = chance + trust * (1 - chance)
    ranks = entropy_ranks([one.entropy for one in said])
    agreed = [one.label == one.guess for one in said]
    groups = tuple(_counts(agreed, ranks, share) for share in GROUPS)
    newest = _counts(agreed[-window:], ranks[-window:], 1.0)
    renamed = renamed_hits(said[-window:])
    compared = {1.0: renamed, -1.0: newest[1.0], 0.0: newest[0.0] - renamed}
    against = {-value: count for value, count in newest.items()}
    return Agreement(
        share=_share(newest),
        sure_share=_share(_counts(agreed[-window:], ranks[-window:], SURE_SHARE)),
        renamed_share=renamed / max(1, len(said[-window:])),
        count=len(said[-window:]),
        least=least,
        log_e=_most_ever([_chosen(agreed, ranks, share) for share in GROUPS], least),
        log_e_below=log_e_value(against, -chance, -1.0),
        log_e_renamed=log_e_value(compared, 0.0, -1.0),
        groups=groups,
    )


def renamed_hits(said: Sequence[Opinion]) -> float:
    """Count agreements with the source model if each class has the name that most others gave it.

    Each answer is compared with all others about the same class, never with itself. A tie is half a
    hit. People who apply a wrong code agree more with the renamed source model than with the
    original one.

    >>> renamed_hits([Opinion(1, 0, 0.1), Opinion(1, 0, 0.1), Opinion(0, 0, 0.1)])
    2.0
    """
    names: dict[int, Counter[int]] = {}
    for one in said:
        others = names.setdefault(one.guess, Counter())
        if one.label is not None and one.label != one.guess:
            others[one.label] += 1
    return sum(_own_hits(others) for others in names.values())


def _own_hits(others: Counter[int]) -> float:
    """Count the answers about one class that repeat what most of the others say."""
    hits = 0.0
    for label, count in others.items():
        rival = max((other for name, other in others.items() if name != label), default=0)
        if count - 1 > rival:
            hits += count
        elif count - 1 == rival and rival:
            hits += count / 2
    return hits


def people_agree(pairs: Sequence[tuple[int | None, int | None]], classes: int) -> float:
    """Return the log of the e-value against "two people agree only by chance".

    >>> people_agree([(0, 0), (1, 1), (2, 2)] * 3, classes=3) > math.log(10)
    True
    """
    if not pairs:
        return 0.0
    first, second = zip(*pairs, strict=True)
    return log_dependence(first, second, classes)


def entropy_ranks(entropies: Sequence[float]) -> list[float]:
    """Rank each value among those so far, from 0 (surest) to 1. Later values change nothing."""
    sorted_so_far: list[float] = []
    ranks = []
    for entropy in entropies:
        insort(sorted_so_far, entropy)
        ranks.append(bisect_left(sorted_so_far, entropy) / len(sorted_so_far))
    return ranks


def _counts(agreed: Sequence[bool], ranks: Sequence[float], share: float) -> dict[float, float]:
    """Count agreements and disagreements on the surest share of the samples."""
    chosen = [one for one in _chosen(agreed, ranks, share) if one is not None]
    return {1.0: sum(chosen), 0.0: len(chosen) - sum(chosen)}


def _chosen(agreed: Sequence[bool], ranks: Sequence[float], share: float) -> list[float | None]:
    """Return 1 for an agreement, 0 for none, and None if the source model is not sure enough."""
    return [one if rank < share else None for one, rank in zip(agreed, ranks, strict=True)]


def _share(seen: Counts) -> float:
    return seen[1.0] / max(1.0, sum(seen.values()))


def _most_ever(groups: Sequence[Sequence[float | None]], mean: float) -> float:
    """Return the most money at any time: a proof stays valid."""
    if not groups[0]:
        return 0.0
    return float(log_mean_exp(np.stack([log_e_path(one, mean) for one in groups])).max())
