"""Confidence sequences: bounds that hold at every look, no matter how often you look.

A test is a game at fair odds. A player who bets against a true hypothesis hardly ever multiplies
the money: tenfold at any time with a probability of at most 1 in 10 (Ville's inequality). So if the
money grew tenfold, the hypothesis is rejected with 90 % confidence, and the test may be repeated
after each answer. The money is called an e-value. Written from Waudby-Smith and Ramdas, "Estimating
means of bounded random variables by betting" (2024), and, for `dependence`, from Wasserman, Ramdas
and Balakrishnan, "Universal inference" (2020).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = Mapping[float, float]  # number of times that each value was seen

# The shares of money to bet on each value, from careful to bold. The gain is the mean of all gains:
# it needs no knowledge about the data, and the order of values does not matter.
_BETS = (np.arange(16) + 0.5) / 16
_PARTS, _STEPS = 32, 4  # parts of a search for a bound, and number of refinements
_MOST_TIMES = 64.0  # needing more than this many times the evidence counts as never


@dataclass(frozen=True, slots=True)
class Estimate:
    """A share, or a difference of shares, on some samples, with its bounds."""

    value: float
    low: float
    high: float
    count: int


def log_threshold(confidence: float) -> float:
    """Return the log of the e-value at which a hypothesis is rejected.

    >>> round(math.exp(log_threshold(0.9)), 6)
    10.0
    """
    return -math.log1p(-confidence)


def log_e_value(seen: Counts, mean: float, lowest: float = 0.0) -> float:
    """Return the log of the e-value against "the values have at most this mean".

    A value's price is its worth at that mean, both counted from the lowest possible value.

    >>> log_e_value({1: 5, 0: 0}, mean=0.5) > math.log(10) > log_e_value({1: 4, 0: 1}, mean=0.5)
    True
    """
    return float(_log_e_values(seen, np.array([mean]), lowest)[0])


def _log_e_values(seen: Counts, means: NDArray[np.float64], lowest: float) -> NDArray[np.float64]:
    """Compute the same for many means."""
    total = np.zeros((len(_BETS), len(means)))
    for value, count in seen.items():
        if count:
            total += count * np.log1p(np.outer(_BETS, (value - lowest) / (means - lowest) - 1))
    return log_mean_exp(total)


def log_e_path(values: Sequence[float | None], mean: float) -> NDArray[np.float64]:
    """Return the log of the e-value of `log_e_value` after each value; None is no value.

    Values are 0 or more.

    >>> path = log_e_path([1, None, 0], mean=0.5)
    >>> [bool(step == path[0]) for step in path]
    [True, True, False]
    """
    worth = np.array([0.0 if value is None else value / mean - 1 for value in values])
    total = np.cumsum(np.log1p(np.outer(_BETS, worth)), axis=1)
    return log_mean_exp(total)


def log_mean_exp(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the mean of e-values, over the first axis."""
    most = values.max(axis=0)
    mean: NDArray[np.float64] = most + np.log(np.exp(values - most).mean(axis=0))
    return mean


def lower_bound(seen: Counts, lowest: float, highest: float, confidence: float) -> float:
    """Return the greatest mean that the values reject. The true mean is at least as great.

    >>> round(lower_bound({1: 20, 0: 0}, 0, 1, confidence=0.9), 3)
    0.837
    """
    needed = log_threshold(confidence)
    low, high = lowest, highest
    for _ in range(_STEPS):
        edges = np.linspace(low, high, _PARTS + 1)
        rejected = _log_e_values(seen, edges[1:-1], lowest) >= needed
        at = int(np.sum(rejected))  # means below a rejected one are rejected too
        low, high = float(edges[at]), float(edges[at + 1])
    return low


def upper_bound(seen: Counts, lowest: float, highest: float, confidence: float) -> float:
    """Return the least mean that is not rejected from the other side."""
    mirrored = {-value: count for value, count in seen.items()}
    return -lower_bound(mirrored, -highest, -lowest, confidence)


def estimate(right: int, count: int, confidence: float) -> Estimate:
    """Estimate a share, with bounds that hold together at every look.

    >>> found = estimate(right=8, count=10, confidence=0.9)
    >>> found.value, found.low < 0.5 < 0.8 < found.high
    (0.8, True)
    """
    seen: Counts = {1: right, 0: count - right}
    each = (1 + confidence) / 2
    low, high = lower_bound(seen, 0, 1, each), upper_bound(seen, 0, 1, each)
    return Estimate(right / count, low, high, count)


def paired_counts(
    labels: Sequence[int | None], new: Sequence[int], old: Sequence[int]
) -> dict[float, float]:
    """Count how often only the new model is right (1), only the old one (-1), neither or both (0).

    >>> paired_counts([0, 0, 0], [0, 0, 1], [0, 1, 0])
    {1: 1, -1: 1, 0: 1}
    """
    triples = list(zip(labels, new, old, strict=True))
    gained = sum(a == label != b for label, a, b in triples)
    lost = sum(b == label != a for label, a, b in triples)
    return {1: gained, -1: lost, 0: len(triples) - gained - lost}


def paired_difference(
    labels: Sequence[int | None], new: Sequence[int], old: Sequence[int], confidence: float
) -> Estimate:
    """Estimate the difference of two accuracies on the same samples.

    Each bound alone holds with the given confidence, at every look.

    >>> found = paired_difference([0] * 20, [0] * 20, [0] * 10 + [1] * 10, confidence=0.9)
    >>> round(found.value, 2), found.low > 0
    (0.5, True)
    """
    seen = paired_counts(labels, new, old)
    value = (seen[1] - seen[-1]) / max(1, len(labels))
    low = lower_bound(seen, -1, 1, confidence)
    return Estimate(value, low, upper_bound(seen, -1, 1, confidence), len(labels))


def log_dependence(
    guesses: Sequence[int | None], labels: Sequence[int | None], classes: int
) -> float:
    """Return the log of the e-value against "the labels do not depend on the guesses".

    Each label is predicted from its guess and from the labels before it. The rival is the best
    prediction that knows the final label frequencies but no guess. So people who always give the
    same answer prove nothing, and people who answer at random do not either.

    >>> log_dependence([0, 1, 2] * 3, [0, 1, 2] * 3, classes=3) > math.log(10)
    True
    >>> log_dependence([0] * 50, [0] * 50, classes=3) > 0
    False
    """
    seen: Counter[int | None] = Counter()
    hits, total = 0, 0.0
    for number, (guess, label) in enumerate(zip(guesses, labels, strict=True)):
        share = (hits + 1) / (number + 2)
        usual = (seen[label] + 0.5) / (number + 0.5 * (classes + 1))  # plus one for "none of these"
        total += math.log(share * (label == guess) + (1 - share) * usual)
        hits += label == guess
        seen[label] += 1
    best = sum(count * math.log(count / len(labels)) for count in seen.values())
    return total - best


def count_needed(seen: Counts, mean: float, lowest: float, confidence: float) -> int | None:
    """Return how many values reject a mean if more of the same kind come; None if they never do.

    >>> count_needed({1: 3, 0: 1}, mean=0.5, lowest=0, confidence=0.9)
    25
    """
    needed = log_threshold(confidence)

    def is_enough(times: float) -> bool:
        more = {value: times * count for value, count in seen.items()}
        return log_e_value(more, mean, lowest) >= needed

    low, high = 1.0, _MOST_TIMES
    if not is_enough(high):
        return None
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return math.ceil(high * sum(seen.values()))
