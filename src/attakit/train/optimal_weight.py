"""The optimal weight of source-like samples: SimATTA's bound, minimised.

With a share λ₀ of source-like samples and a weight w₀ on their error, the error on the target is
at most (Gui, Li and Ji, "Active Test-Time Adaptation", ICLR 2024, section 3.1; A is the divergence
between the two sets, B the gap between empirical and true error)

    w₀A + B·sqrt(w₀²/λ₀ + (1−w₀)²/(1−λ₀))  =  w₀A + B·sqrt((w₀−λ₀)²/v + 1),   v = λ₀(1−λ₀).

Its derivative is zero where, with u = λ₀ − w₀, B·u/v = A·sqrt(u²/v + 1). Squared and solved,

    u² (B² − A²v) = A²v²,   so   w₀* = λ₀ − v·sqrt(A²/(B² − A²v)).

The paper's printed formula (with B² = c₁²d/N) lacks the factor v in front of the root:
dividing both sides of B·u/v = … by B/v leaves it on the right. Where B² ≤ A²v the bound grows with
w₀ everywhere, and the best weight is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attakit.errors import SettingError

FloatArray = NDArray[np.float64]


def optimal_low_weight(low_share: ArrayLike, divergence: ArrayLike, gap: ArrayLike) -> FloatArray:
    """Weight w₀* on the source-like samples that minimises `target_bound`, within [0, 1].

    Arguments broadcast. A set without samples cannot have a weight, so shares of 0 and 1 give
    weights of 0 and 1.

    Parameters
    ----------
    low_share
        λ₀, the share of source-like samples among all, in [0, 1].
    divergence
        A, the distance between source-like and target samples, at least 0.
    gap
        B, the gap between empirical and true error, at least 0. Falls with the number of samples.

    Examples
    --------
    >>> float(optimal_low_weight(0.5, divergence=0.0, gap=1.0))
    0.5
    >>> round(float(optimal_low_weight(0.5, divergence=1.0, gap=1.0)), 4)
    0.2113
    >>> float(optimal_low_weight(0.5, divergence=2.0, gap=1.0))
    0.0
    """
    share, apart, gap = _checked(low_share, divergence, gap)
    # Only the ratio of A and B matters; dividing by the larger keeps squares from overflowing.
    scale = np.maximum(apart, gap)
    scale = np.where(scale > 0, scale, 1.0)
    apart, gap = apart / scale, gap / scale
    spread = share * (1 - share)
    room = (gap - apart * np.sqrt(spread)) * (gap + apart * np.sqrt(spread))
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        inside = share - spread * apart / np.sqrt(room)
    best = np.where(room > 0, np.clip(inside, 0.0, 1.0), 0.0)
    return np.where((apart == 0) | (spread == 0), share, best)


def target_bound(
    low_weight: ArrayLike, low_share: ArrayLike, divergence: ArrayLike, gap: ArrayLike
) -> FloatArray:
    """Bound on the target error above its best (Eq. 4.3a), as a function of w₀.

    Infinite if a set without samples has a weight.

    Parameters
    ----------
    low_weight
        w₀, the weight of the error on source-like samples, in [0, 1].
    low_share, divergence, gap
        As for `optimal_low_weight`.

    Examples
    --------
    >>> float(target_bound(0.5, low_share=0.5, divergence=1.0, gap=2.0))
    2.5
    """
    share, apart, gap = _checked(low_share, divergence, gap)
    weight = check_numbers("low_weight", low_weight, at_most=1.0)
    spread = share * (1 - share)
    off = np.square(weight - share)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        excess = np.where(off == 0, 0.0, off / spread)
        uncertainty = np.where(np.isinf(excess), np.inf, gap * np.sqrt(excess + 1))
    return np.asarray(weight * apart + uncertainty)


def source_bound(
    low_weight: ArrayLike, low_share: ArrayLike, divergence: ArrayLike, gap: ArrayLike
) -> FloatArray:
    """Bound on the source error above its best (Eq. 4.3b), like `target_bound` for the target.

    Examples
    --------
    >>> float(source_bound(0.75, low_share=0.75, divergence=1.0, gap=2.0))
    2.25
    """
    weight = check_numbers("low_weight", low_weight, at_most=1.0)
    share = check_numbers("low_share", low_share, at_most=1.0)
    return target_bound(1 - weight, 1 - share, divergence, gap)


def _checked(
    low_share: ArrayLike, divergence: ArrayLike, gap: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    return (
        check_numbers("low_share", low_share, at_most=1.0),
        check_numbers("divergence", divergence),
        check_numbers("gap", gap),
    )


def check_numbers(
    name: str, values: Any, *, at_least: float = 0.0, at_most: float = np.inf
) -> FloatArray:
    """Turn values into an array, or raise `SettingError` unless all are finite and in range.

    >>> check_numbers("gap", -1)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: theory: gap must be finite and at least 0, got -1.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SettingError(f"theory: {name} must be numbers, got {values!r}.") from error
    if not np.all(np.isfinite(numbers) & (numbers >= at_least) & (numbers <= at_most)):
        wanted = (
            f"finite and at least {at_least:g}"
            if np.isinf(at_most)
            else f"between {at_least:g} and {at_most:g}"
        )
        raise SettingError(f"theory: {name} must be {wanted}, got {values!r}.")
    return numbers
