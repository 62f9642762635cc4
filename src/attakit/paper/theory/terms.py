"""The terms of the bounds: tails, slacks, C, A, B and γ.

Symbols are those of Gui, Li and Ji, "Active Test-Time Adaptation", ICLR 2024, section 3 and
appendices. There are N labelled samples: a share λ_i comes from domain i and counts with weight
w_i. Each domain has m unlabelled samples. The hypothesis class has VC dimension d. A bound may fail
with probability δ. All functions broadcast.

If the printed proof drops a factor, `form="paper"` is the printed term and `form="proved"` the one
that `docs/theory.md` derives.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from attakit.errors import SettingError, check_choice
from attakit.train.optimal_weight import FloatArray, check_numbers

BoundForm = Literal["paper", "proved"]
FORMS = ("paper", "proved")

MOST_DISTANCE = 2.0  # between two distributions that a hypothesis separates without error
_SUM_TOLERANCE = 1e-6  # tolerance for shares and weights that add up to 1


def hoeffding_tail(margin: ArrayLike, widths: ArrayLike) -> FloatArray:
    """Bound the probability that a mean of independent numbers is off by a margin.

    Parameters
    ----------
    margin
        ε, 0 or more. A probability above 1 becomes 1.
    widths
        b − a of the range of each number, along the last axis.

    Examples
    --------
    >>> round(float(hoeffding_tail(0.1, [1.0] * 200)), 4)
    0.0366
    """
    apart, ranges = check_numbers("margin", margin), check_numbers("widths", widths)
    if ranges.ndim == 0 or ranges.shape[-1] == 0:
        raise SettingError(f"theory: widths must hold a width per number, got {widths!r}.")
    count, total = ranges.shape[-1], np.square(ranges).sum(axis=-1)
    return _tail(2 * count**2 * np.square(apart), total)


def variance_factor(weights: ArrayLike, shares: ArrayLike) -> FloatArray:
    """Σ w_i²/λ_i: the loss of precision of a weighted mean; at least 1, for w = λ.

    Examples
    --------
    >>> float(variance_factor([0.5, 0.5], [0.5, 0.5]))
    1.0
    >>> float(variance_factor([0.5, 0.5], [0.9, 0.1]))
    2.7777777777777777
    """
    checked, parts = check_mixture(weights, shares)
    # A domain without samples has no weight, and adds nothing.
    safe = np.where(parts > 0, parts, 1.0)
    return np.asarray((np.square(checked) / safe).sum(axis=-1))


def weighted_error_tail(
    margin: ArrayLike, weights: ArrayLike, shares: ArrayLike, samples: ArrayLike
) -> FloatArray:
    """Lemma 7: bound the probability that one hypothesis' weighted error is off by a margin.

    Examples
    --------
    >>> round(float(weighted_error_tail(0.1, [0.5, 0.5], [0.5, 0.5], samples=200)), 4)
    0.0366
    """
    apart = check_numbers("margin", margin)
    count = check_numbers("samples", samples, at_least=1)
    return _tail(2 * count * np.square(apart), variance_factor(weights, shares))


def gap_term(
    samples: ArrayLike, dimension: ArrayLike, delta: ArrayLike, *, form: BoundForm = "paper"
) -> FloatArray:
    """B, twice the gap between empirical and true error of all hypotheses at w = λ.

    Examples
    --------
    >>> round(float(gap_term(2000, dimension=10, delta=0.05)), 3)
    0.293
    >>> round(float(gap_term(2000, dimension=10, delta=0.05, form="proved")), 3)
    1.182
    """
    check_choice("theory", "form", form, FORMS)
    count, size, chance = check_sizes(samples, dimension, delta, name="samples")
    if form == "paper":
        return np.asarray(2 * np.sqrt((size * np.log(2 * count) - np.log(chance)) / (2 * count)))
    return np.asarray(2 * np.sqrt(8 * (size * np.log(2 * count + 1) + np.log(4 / chance)) / count))


def empirical_margin(
    weights: ArrayLike,
    shares: ArrayLike,
    *,
    samples: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    form: BoundForm = "paper",
) -> FloatArray:
    """C of Theorem 1: the largest error of any hypothesis' weighted error.

    Examples
    --------
    >>> sizes = {"samples": 2000, "dimension": 10, "delta": 0.05}
    >>> round(float(empirical_margin([0.5, 0.5], [0.5, 0.5], **sizes)), 4)
    0.1466
    """
    gap = gap_term(samples, dimension, delta, form=form)
    return np.asarray(np.sqrt(variance_factor(weights, shares)) * gap / 2)


def divergence_tail(
    margin: ArrayLike, samples: ArrayLike, other_samples: ArrayLike, dimension: ArrayLike
) -> FloatArray:
    """Bound the probability that the HΔH-distance of two samples is off by a margin.

    Theorem 3.4 of Kifer et al. for samples of two sizes; the paper prints one size for both before
    the exponentials. For equal sizes it is δ if the margin is `divergence_slack`.

    Parameters
    ----------
    margin
        ε, 0 or more. A probability above 1 becomes 1.
    samples, other_samples
        m₁ and m₂: the number of samples of each side.
    dimension
        d: VC dimension of the hypotheses. Their disagreements have at most 2d.

    Examples
    --------
    >>> round(float(divergence_tail(0.57, 10_000, 10_000, dimension=10)), 2)
    0.01
    """
    apart = check_numbers("margin", margin)
    size = check_numbers("dimension", dimension, at_least=1)
    chance = sum(
        np.exp(2 * size * np.log(2 * count) - count * np.square(apart) / 16)
        for count in (
            check_numbers("samples", samples, at_least=1),
            check_numbers("other_samples", other_samples, at_least=1),
        )
    )
    return np.asarray(np.minimum(1.0, chance))


def divergence_slack(
    unlabelled: ArrayLike, dimension: ArrayLike, delta: ArrayLike, *, form: BoundForm = "paper"
) -> FloatArray:
    """Return how much the HΔH-distance may exceed that of m samples from each side.

    Examples
    --------
    >>> round(float(divergence_slack(10_000, dimension=10, delta=0.05)), 3)
    0.568
    """
    check_choice("theory", "form", form, FORMS)
    count, size, chance = check_sizes(unlabelled, dimension, delta, name="unlabelled")
    if form == "paper":
        return np.asarray(4 * np.sqrt((2 * size * np.log(2 * count) + np.log(2 / chance)) / count))
    return np.asarray(8 * np.sqrt((2 * size * np.log(4 * count + 1) + np.log(4 / chance)) / count))


def divergence_term(
    distance: ArrayLike,
    *,
    unlabelled: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    joint: ArrayLike = 0.0,
    form: BoundForm = "paper",
) -> FloatArray:
    """A of Eq. 4.3: estimated HΔH-distance, the slack of the estimate, and twice γ.

    Examples
    --------
    >>> sizes = {"unlabelled": 10_000, "dimension": 10, "delta": 0.05}
    >>> round(float(divergence_term(0.5, **sizes, joint=0.1)), 3)
    1.268
    """
    apart = check_numbers("distance", distance, at_most=MOST_DISTANCE)
    both = check_numbers("joint", joint, at_most=2.0)
    return np.asarray(apart + divergence_slack(unlabelled, dimension, delta, form=form) + 2 * both)


def joint_error(errors: ArrayLike, other_errors: ArrayLike) -> FloatArray:
    """γ: the least sum of the errors of one hypothesis on two domains.

    Parameters
    ----------
    errors, other_errors
        Errors of the same hypotheses on either domain, along the last axis.

    Examples
    --------
    >>> float(joint_error([0.0, 0.1, 0.5], [0.5, 0.2, 0.0]))
    0.30000000000000004
    """
    one = check_numbers("errors", errors, at_most=1.0)
    other = check_numbers("other_errors", other_errors, at_most=1.0)
    if one.ndim == 0 or one.shape[-1:] != other.shape[-1:] or one.shape[-1] == 0:
        raise SettingError(
            f"theory: errors and other_errors must be of the same hypotheses, got shapes "
            f"{one.shape} and {other.shape}."
        )
    return np.asarray((one + other).min(axis=-1))


def _tail(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return 2·exp(−numerator/denominator), at most 1; constant numbers are never off."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.where(numerator == 0, 0.0, numerator / denominator)
    return np.asarray(np.minimum(1.0, 2 * np.exp(-exponent)))


def check_delta(delta: Any) -> FloatArray:
    """Return δ, the probability that a bound fails, strictly between 0 and 1.

    >>> check_delta(1.0)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: theory: delta must be greater than 0 and less than 1, got 1.0.
    """
    numbers = check_numbers("delta", delta)
    if not np.all((numbers > 0) & (numbers < 1)):
        raise SettingError(f"theory: delta must be greater than 0 and less than 1, got {delta!r}.")
    return numbers


def check_sizes(
    samples: ArrayLike, dimension: ArrayLike, delta: ArrayLike, *, name: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check a number of samples and a VC dimension, both at least 1, and δ."""
    return (
        check_numbers(name, samples, at_least=1),
        check_numbers("dimension", dimension, at_least=1),
        check_delta(delta),
    )


def check_simplex(name: str, values: Any) -> FloatArray:
    """Turn values into an array (…, domains) whose last axis is not negative and adds up to 1.

    >>> check_simplex("shares", [1, 1])
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: theory: shares must add up to 1 along the last axis, got [1, 1].
    """
    numbers = check_numbers(name, values, at_most=1.0)
    if numbers.ndim == 0:
        raise SettingError(f"theory: {name} must hold a number per domain, got {values!r}.")
    if not np.all(np.abs(numbers.sum(axis=-1) - 1) <= _SUM_TOLERANCE):
        raise SettingError(f"theory: {name} must add up to 1 along the last axis, got {values!r}.")
    return numbers


def check_mixture(weights: ArrayLike, shares: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check weights w and shares λ of the same domains; a domain without samples has no weight."""
    checked, parts = check_simplex("weights", weights), check_simplex("shares", shares)
    if checked.shape[-1] != parts.shape[-1]:
        raise SettingError(
            "theory: weights and shares must have the same number of domains, got "
            f"{checked.shape[-1]} and {parts.shape[-1]}."
        )
    if np.any((parts == 0) & (checked > 0)):
        raise SettingError(
            "theory: a domain without samples cannot have a weight. Set the weight to 0 where the "
            f"share is 0, got weights {weights!r} and shares {shares!r}."
        )
    return checked, parts
