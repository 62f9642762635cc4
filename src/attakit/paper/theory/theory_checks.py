"""Checks of the numbers that bounds take: chances, sizes, and shares that add up to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attakit.errors import SettingError
from attakit.train.optimal_weight import FloatArray, check_numbers

_SUM_TOLERANCE = 1e-6  # of shares and weights that add up to 1


def check_delta(delta: Any) -> FloatArray:
    """The chance δ that a bound fails, which lies strictly between 0 and 1.

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
    """A number of samples and a VC dimension, both at least 1, and δ."""
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
    """Weights w and shares λ of the same domains; a domain without samples carries no weight."""
    checked, parts = check_simplex("weights", weights), check_simplex("shares", shares)
    if checked.shape[-1] != parts.shape[-1]:
        raise SettingError(
            f"theory: weights and shares must be of equally many domains, got "
            f"{checked.shape[-1]} and {parts.shape[-1]}."
        )
    if np.any((parts == 0) & (checked > 0)):
        raise SettingError(
            f"theory: a domain without samples cannot carry weight: set the weight to 0 where the "
            f"share is 0, got weights {weights!r} and shares {shares!r}."
        )
    return checked, parts
