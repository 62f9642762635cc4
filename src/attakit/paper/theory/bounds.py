"""Bounds over many domains (Lemma 6, Theorem 1, Corollary 3), and gains with all targets as one.

The last axis of weights, shares and distances is over domains. All axes before it broadcast, also
with the other arguments. Bounds above 1 hold for any error and say nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from attakit.errors import SettingError, check_choice, check_count
from attakit.paper.theory.terms import (
    FORMS,
    MOST_DISTANCE,
    BoundForm,
    check_delta,
    check_simplex,
    divergence_slack,
    empirical_margin,
)
from attakit.train.optimal_weight import FloatArray, check_numbers, target_bound


def weighted_error_margin(
    weights: ArrayLike,
    distances: ArrayLike,
    *,
    unlabelled: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    domain: int | None = None,
    joint: ArrayLike = 0.0,
    form: BoundForm = "paper",
) -> FloatArray:
    """Lemma 6: the largest difference between the weighted error and the error on one domain.

    Parameters
    ----------
    weights
        w, on the simplex.
    distances
        Estimated HΔH-distance of each domain to the target domain of the bound, from 0 to 2.
    unlabelled, dimension, delta
        m, d and δ.
    domain
        Position of the target domain of the bound, whose own term is zero; None if it is none of
        them.
    joint
        γ_i of each domain.
    form
        "proved" splits δ among the distances, which the paper forgets.

    Examples
    --------
    >>> sizes = {"unlabelled": 10_000, "dimension": 10, "delta": 0.05}
    >>> round(float(weighted_error_margin([0.5, 0.5], [0.4, 0.0], domain=1, **sizes)), 3)
    0.242
    """
    counted = _counted(weights, domain)
    chance = _each_chance(delta, int(counted.sum()), form)
    slack = divergence_slack(unlabelled, dimension, chance, form=form)
    return _margin(weights, distances, counted, slack, joint)


def domain_bound(
    weights: ArrayLike,
    shares: ArrayLike,
    distances: ArrayLike,
    *,
    samples: ArrayLike,
    unlabelled: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    domain: int | None = None,
    nearest_distance: ArrayLike = 0.0,
    joint: ArrayLike = 0.0,
    best_error: ArrayLike = 0.0,
    form: BoundForm = "paper",
) -> FloatArray:
    """Theorem 1 and Corollary 3: an upper bound for the error of ĥ on one domain.

    Parameters
    ----------
    weights, shares
        w and λ, on the simplex; λ_i = 0 only if w_i = 0.
    distances
        Estimated HΔH-distance of each domain to the target domain of the bound. For a future
        domain: to k', the known domain nearest to it.
    samples, unlabelled, dimension, delta
        N, m, d and δ.
    domain
        j, the position of the target domain if it was trained on. None if it is not among the
        domains, like a future one, or the source if source-like samples replace it.
    nearest_distance
        δ_D, the largest distance of a future domain from k'.
    joint, best_error
        γ_i of each domain, and the least error on the target domain.
    form
        "paper", or "proved" (see `attakit.paper.theory.terms`).

    Examples
    --------
    >>> sizes = {"samples": 10_000, "unlabelled": 10_000, "dimension": 5, "delta": 0.05}
    >>> w = [0.2, 0.8]
    >>> round(float(domain_bound(w, w, [0.5, 0.0], domain=1, **sizes)), 3)
    0.284
    >>> round(float(domain_bound(w, w, [0.5, 0.0], nearest_distance=0.1, **sizes)), 3)
    0.708
    >>> round(float(domain_bound(w, w, [0.1, 0.5], **sizes)), 3)
    0.928
    """
    away = check_numbers("nearest_distance", nearest_distance, at_most=MOST_DISTANCE)
    counted = _counted(weights, domain)
    chance = _each_chance(delta, int(counted.sum()) + 1, form)
    slack = divergence_slack(unlabelled, dimension, chance, form=form)
    margin = _margin(weights, distances, counted, slack, joint) + away / 2
    gap = empirical_margin(
        weights, shares, samples=samples, dimension=dimension, delta=chance, form=form
    )
    return np.asarray(check_numbers("best_error", best_error, at_most=1.0) + 2 * margin + 2 * gap)


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
        A between the source and the source-like samples, and between the source and the target.
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
    """Theorem 2: how much labels on the target lower the bound on its error.

    Above 0 for w₀ = λ₀ < 1 if A > 0, and largest for w₀*.

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
    """Corollary 4: how much source-like samples lower the bound on the source error.

    Above 0 for w₀ = λ₀ > 0 if the source-like samples are nearer to the source than the target
    is. This means that A of the first, with its γ, is below A of the second.

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


def _counted(weights: ArrayLike, domain: int | None) -> FloatArray:
    """Return 1 for every domain except the target of the bound, whose distance to itself is 0."""
    count = check_simplex("weights", weights).shape[-1]
    counted = np.ones(count)
    if domain is not None:
        check_count("theory", "domain", domain, at_least=0, at_most=count - 1)
        counted[domain] = 0.0
    return counted


def _each_chance(delta: ArrayLike, events: int, form: BoundForm) -> FloatArray:
    """Return the δ of one event: several may fail, so together they need the union bound."""
    check_choice("theory", "form", form, FORMS)
    chance = check_delta(delta)
    return chance / max(1, events) if form == "proved" else chance


def _margin(
    weights: ArrayLike,
    distances: ArrayLike,
    counted: FloatArray,
    slack: FloatArray,
    joint: ArrayLike,
) -> FloatArray:
    apart = check_numbers("distances", distances, at_most=MOST_DISTANCE)
    if apart.shape[-1:] != counted.shape:
        raise SettingError(
            f"theory: distances must hold one per domain, got shape {apart.shape} for "
            f"{len(counted)} domains."
        )
    both = check_numbers("joint", joint, at_most=2.0)
    each = (apart + slack[..., None]) / 2 + both
    return np.asarray((check_simplex("weights", weights) * counted * each).sum(axis=-1))
