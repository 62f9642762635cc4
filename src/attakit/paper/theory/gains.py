"""What labels and source-like samples gain, all targets as one: Theorem 2 and Corollary 4."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attakit.train.optimal_weight import FloatArray, check_numbers, target_bound


def two_set_source_bound(
    low_weight: ArrayLike,
    low_share: ArrayLike,
    low_divergence: ArrayLike,
    target_divergence: ArrayLike,
    gap: ArrayLike,
) -> FloatArray:
    """EB_S of Corollary 4: the source error above its best, with all targets as one domain.

    Parameters
    ----------
    low_weight, low_share
        w₀ and λ₀ of the source-like samples, in [0, 1].
    low_divergence, target_divergence
        A of the source and the source-like samples, and A of the source and the target.
    gap
        B.

    Examples
    --------
    >>> float(two_set_source_bound(0.5, 0.5, low_divergence=0.2, target_divergence=1.0, gap=2.0))
    2.6
    """
    apart = check_numbers("target_divergence", target_divergence)
    weight = check_numbers("low_weight", low_weight, at_most=1.0)
    return np.asarray(
        target_bound(low_weight, low_share, low_divergence, gap) + (1 - weight) * apart
    )


def gain_from_labels(
    low_weight: ArrayLike, low_share: ArrayLike, divergence: ArrayLike, gap: ArrayLike
) -> FloatArray:
    """Theorem 2: by how much labels on the target lower the bound on its error.

    Above 0 for w₀ = λ₀ < 1 wherever A > 0, and at its most for w₀*.

    Examples
    --------
    >>> float(gain_from_labels(0.75, 0.75, divergence=1.0, gap=2.0))
    0.25
    """
    without = target_bound(1.0, 1.0, divergence, gap)
    return np.asarray(without - target_bound(low_weight, low_share, divergence, gap))


def gain_from_source_like(
    low_weight: ArrayLike,
    low_share: ArrayLike,
    low_divergence: ArrayLike,
    target_divergence: ArrayLike,
    gap: ArrayLike,
) -> FloatArray:
    """Corollary 4: by how much source-like samples lower the bound on the source error.

    Above 0 for w₀ = λ₀ > 0 wherever the source-like samples are nearer to the source than the
    target is: A of the first, with its γ, below A of the second.

    Examples
    --------
    >>> round(float(gain_from_source_like(0.5, 0.5, 0.2, 1.0, gap=2.0)), 6)
    0.4
    """
    without = two_set_source_bound(0.0, 0.0, low_divergence, target_divergence, gap)
    return np.asarray(
        without
        - two_set_source_bound(low_weight, low_share, low_divergence, target_divergence, gap)
    )
