"""The distance between two samples: how well a classifier separates them.

A hypothesis that separates two domains with (balanced) error e gives a distance of 2(1 − 2e): 0 if
it guesses, 2 if it never errs. The best one of a class gives the H-divergence of Ben-David et al.
(2010). If the class contains a constant hypothesis, this is at most the HΔH-distance. So the
estimate is a lower bound; an exact one is impossible for any useful class.

Every sample is judged by a classifier that has not seen it (cross-fitting). So memorising the
samples gains nothing, and two samples from one distribution have a distance of about 0.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attakit.errors import SettingError, check_choice, check_count, check_range
from attakit.paper.theory.terms import MOST_DISTANCE
from attakit.randomness import derived_seed, generator
from attakit.train.optimal_weight import check_numbers

Hypotheses = Literal["linear", "network"]

_FEWEST = 2  # samples of each side: one to train on, one to judge
_HIDDEN = 16
_Features = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Divergence:
    """An estimated HΔH-distance with its confidence interval, all from 0 to 2.

    Parameters
    ----------
    value
        The estimate.
    low, high
        Ends of the confidence interval.
    samples
        Number of samples of each side.
    """

    value: float
    low: float
    high: float
    samples: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def estimate_divergence(
    first: ArrayLike,
    second: ArrayLike,
    *,
    hypotheses: Hypotheses = "linear",
    folds: int = 5,
    confidence: float = 0.95,
    max_samples: int = 2000,
    seed: int = 0,
) -> Divergence:
    """Estimate the HΔH-distance between the distributions of two samples.

    Parameters
    ----------
    first, second
        Features, (samples, dimensions) each; the two may be of different sizes.
    hypotheses
        "linear": logistic regression. "network": one hidden layer of 16 units, which finds more and
        takes about eight times as long.
    folds
        Number of folds; fewer if a side is smaller.
    confidence
        Confidence of the interval: Wilson's for the errors on either side, combined. It is for a
        single look; of many intervals some miss.
    max_samples
        Larger sides are reduced to this number at random: 2,000 give an interval of ±0.09 at most.
    seed
        Seed of the random choices.

    Examples
    --------
    >>> here = np.arange(40.0).reshape(-1, 1)
    >>> print(estimate_divergence(here, here + 100))
    2.00 (1.54 to 2.00)
    >>> estimate_divergence(here, here).low
    0.0
    """
    check_choice("estimate_divergence", "hypotheses", hypotheses, ("linear", "network"))
    check_count("estimate_divergence", "folds", folds, at_least=2)
    check_range("estimate_divergence", "confidence", confidence, above=0)
    check_count("estimate_divergence", "max_samples", max_samples, at_least=_FEWEST)
    if confidence >= 1:
        raise SettingError(f"estimate_divergence: confidence must be below 1, got {confidence}.")
    sides = [
        _thinned(_features(name, rows), max_samples, generator(seed, f"divergence {name}"))
        for name, rows in (("first", first), ("second", second))
    ]
    if sides[0].shape[1] != sides[1].shape[1]:
        raise SettingError(
            f"estimate_divergence: both samples must have the same features, got "
            f"{sides[0].shape[1]} and {sides[1].shape[1]} dimensions."
        )
    parts = min(folds, len(sides[0]), len(sides[1]))
    wrong = _cross_fitted_errors(sides, parts, hypotheses, seed)
    return _from_errors(wrong, (len(sides[0]), len(sides[1])), confidence)


def _features(name: str, rows: ArrayLike) -> _Features:
    features = check_numbers(f"{name} features", rows, at_least=-np.inf)
    if features.ndim != 2 or len(features) < _FEWEST or features.shape[1] == 0:
        raise SettingError(
            f"estimate_divergence: {name} must be at least {_FEWEST} rows of features, got shape "
            f"{features.shape}."
        )
    return features


def _thinned(features: _Features, limit: int, random: np.random.Generator) -> _Features:
    """Shuffle, so that folds are random, and cut."""
    return features[random.permutation(len(features))[:limit]]


def _cross_fitted_errors(
    sides: list[_Features], folds: int, hypotheses: Hypotheses, seed: int
) -> tuple[float, float]:
    """Return the share of either side that classifiers, which have not seen it, confuse."""
    wrong = np.zeros(2)
    for fold in range(folds):
        held_out = [np.arange(len(side)) % folds == fold for side in sides]
        model = _train(
            [side[~out] for side, out in zip(sides, held_out, strict=True)],
            hypotheses,
            derived_seed(seed, "discriminator", fold),
        )
        for label, (side, out) in enumerate(zip(sides, held_out, strict=True)):
            wrong[label] += np.sum(model.predict(side[out]) != label)
    return float(wrong[0] / len(sides[0])), float(wrong[1] / len(sides[1]))


def _train(sides: list[_Features], hypotheses: Hypotheses, seed: int) -> Any:
    """Train a classifier of the two sides that weighs both equally."""
    size = max(len(side) for side in sides)
    # The smaller side is repeated: scikit-learn's network takes no weights before version 1.7.
    rows = np.concatenate([side[np.arange(size) % len(side)] for side in sides])
    labels = np.repeat([0, 1], size)
    model = _discriminator(hypotheses, seed)
    with warnings.catch_warnings():
        # A discriminator that is stopped early still belongs to the class.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, labels)


def _discriminator(hypotheses: Hypotheses, seed: int) -> Any:
    if hypotheses == "linear":
        model = LogisticRegression(C=0.1, max_iter=100, random_state=seed)
    else:
        model = MLPClassifier((_HIDDEN,), solver="lbfgs", alpha=1.0, max_iter=40, random_state=seed)
    return make_pipeline(StandardScaler(), model)


def _from_errors(
    wrong: tuple[float, float], samples: tuple[int, int], confidence: float
) -> Divergence:
    raw = MOST_DISTANCE * (1 - sum(wrong))
    value = min(max(raw, 0.0), MOST_DISTANCE)
    # Each fold trains the judges of the others. If there is nothing to find, this doubles the
    # variance of the errors (docs/theory.md), so every sample counts as half.
    counts = [n / 2 for n in samples]
    ends = [_wilson(share, n, confidence) for share, n in zip(wrong, counts, strict=True)]
    # Larger errors mean a smaller distance, so upper ends become lower ends.
    down = math.hypot(*(high - share for share, (_, high) in zip(wrong, ends, strict=True)))
    up = math.hypot(*(share - low for share, (low, _) in zip(wrong, ends, strict=True)))
    low = min(max(raw - MOST_DISTANCE * down, 0.0), value)
    high = min(value + MOST_DISTANCE * up, MOST_DISTANCE)
    return Divergence(value, low, high, samples)


def _wilson(share: float, count: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval of a share, which is not empty if nothing or all is wrong."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2) / (1 + z * z / count)
    return max(0.0, centre - half), min(1.0, centre + half)
