"""Bounds over many domains: Lemma 6, Theorem 1 and Corollary 3. Two domains are in `weights`.

The last axis of weights, shares and distances is over domains; all that stands before it
broadcasts, also with the other arguments. Bounds above 1 are true of any error and say nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from attakit.errors import SettingError, check_choice, check_count
from attakit.paper.theory.terms import (
    FORMS,
    MOST_DISTANCE,
    BoundForm,
    divergence_slack,
    empirical_margin,
)
from attakit.paper.theory.theory_checks import check_delta, check_simplex
from attakit.train.optimal_weight import FloatArray, check_numbers


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
    """Lemma 6: the most by which weighted error and error on one domain differ.

    Parameters
    ----------
    weights
        w, on the simplex.
    distances
        Estimated HΔH-distance of each domain to the one in question, from 0 to 2.
    unlabelled, dimension, delta
        m, d and δ.
    domain
        Which of the domains is the one in question, whose own term is zero; None: it is none of
        them.
    joint
        γ_i of each domain.
    form
        "proved" shares δ out among the distances, which the paper forgets.

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


def past_domain_bound(
    weights: ArrayLike,
    shares: ArrayLike,
    distances: ArrayLike,
    *,
    domain: int,
    samples: ArrayLike,
    unlabelled: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    joint: ArrayLike = 0.0,
    best_error: ArrayLike = 0.0,
    form: BoundForm = "paper",
) -> FloatArray:
    """Theorem 1 for a domain j that was trained on: ε_j(ĥ) is at most this.

    Parameters
    ----------
    weights, shares
        w and λ, on the simplex; λ_i = 0 only where w_i = 0.
    distances
        Estimated HΔH-distance of each domain to domain j.
    domain
        j, the position of the domain.
    samples, unlabelled, dimension, delta
        N, m, d and δ.
    joint, best_error
        γ_i of each domain, and the least error on domain j.
    form
        "paper", or "proved" (see `attakit.paper.theory.terms`).

    Examples
    --------
    >>> sizes = {"samples": 10_000, "unlabelled": 10_000, "dimension": 5, "delta": 0.05}
    >>> w, distances = [0.2, 0.8], [0.5, 0.0]
    >>> round(float(past_domain_bound(w, w, distances, domain=1, **sizes)), 3)
    0.284
    """
    sizes = _Sizes(samples, unlabelled, dimension, delta)
    return _bound(weights, shares, distances, sizes, joint, best_error, form, domain=domain)


def future_domain_bound(
    weights: ArrayLike,
    shares: ArrayLike,
    distances: ArrayLike,
    *,
    nearest_distance: ArrayLike,
    samples: ArrayLike,
    unlabelled: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    joint: ArrayLike = 0.0,
    best_error: ArrayLike = 0.0,
    form: BoundForm = "paper",
) -> FloatArray:
    """Theorem 1 for a domain that is still to come: ε_{t+k}(ĥ) is at most this.

    Parameters
    ----------
    weights, shares, samples, unlabelled, dimension, delta, joint, best_error, form
        As for `past_domain_bound`; γ_i and the least error are of the domain to come.
    distances
        Estimated HΔH-distance of each domain to k', the known domain nearest to the one to come.
    nearest_distance
        δ_D, the most that the domain to come may be away from k'.

    Examples
    --------
    >>> sizes = {"samples": 10_000, "unlabelled": 10_000, "dimension": 5, "delta": 0.05}
    >>> w, distances = [0.2, 0.8], [0.5, 0.0]
    >>> round(float(future_domain_bound(w, w, distances, nearest_distance=0.1, **sizes)), 3)
    0.708
    """
    sizes = _Sizes(samples, unlabelled, dimension, delta)
    away = check_numbers("nearest_distance", nearest_distance, at_most=MOST_DISTANCE)
    return _bound(weights, shares, distances, sizes, joint, best_error, form, away=away)


def practical_source_bound(
    weights: ArrayLike,
    shares: ArrayLike,
    distances: ArrayLike,
    *,
    samples: ArrayLike,
    unlabelled: ArrayLike,
    dimension: ArrayLike,
    delta: ArrayLike,
    joint: ArrayLike = 0.0,
    best_error: ArrayLike = 0.0,
    form: BoundForm = "paper",
) -> FloatArray:
    """Corollary 3: ε_S(ĥ) is at most this where source-like samples stand in for the source.

    The first of the domains is then the source-like set, and the source is none of them.

    Parameters
    ----------
    weights, shares, samples, unlabelled, dimension, delta, joint, best_error, form
        As for `past_domain_bound`; γ_i and the least error are of the source.
    distances
        Estimated HΔH-distance of each domain to the source.

    Examples
    --------
    >>> sizes = {"samples": 10_000, "unlabelled": 10_000, "dimension": 5, "delta": 0.05}
    >>> round(float(practical_source_bound([0.2, 0.8], [0.2, 0.8], [0.1, 0.5], **sizes)), 3)
    0.928
    """
    sizes = _Sizes(samples, unlabelled, dimension, delta)
    return _bound(weights, shares, distances, sizes, joint, best_error, form)


class _Sizes(NamedTuple):
    samples: ArrayLike
    unlabelled: ArrayLike
    dimension: ArrayLike
    delta: ArrayLike


def _bound(
    weights: ArrayLike,
    shares: ArrayLike,
    distances: ArrayLike,
    sizes: _Sizes,
    joint: ArrayLike,
    best_error: ArrayLike,
    form: BoundForm,
    *,
    domain: int | None = None,
    away: ArrayLike = 0.0,
) -> FloatArray:
    """Best error + 2·(Lemma 6 + half of what lies between) + 2·C: what the three bounds share."""
    counted = _counted(weights, domain)
    chance = _each_chance(sizes.delta, int(counted.sum()) + 1, form)
    slack = divergence_slack(sizes.unlabelled, sizes.dimension, chance, form=form)
    margin = _margin(weights, distances, counted, slack, joint) + np.asarray(away) / 2
    gap = empirical_margin(
        weights, shares, samples=sizes.samples, dimension=sizes.dimension, delta=chance, form=form
    )
    return np.asarray(check_numbers("best_error", best_error, at_most=1.0) + 2 * margin + 2 * gap)


def _counted(weights: ArrayLike, domain: int | None) -> FloatArray:
    """1 for every domain but the one in question, whose distance to itself is zero."""
    count = check_simplex("weights", weights).shape[-1]
    counted = np.ones(count)
    if domain is not None:
        check_count("theory", "domain", domain, at_least=0, at_most=count - 1)
        counted[domain] = 0.0
    return counted


def _each_chance(delta: ArrayLike, events: int, form: BoundForm) -> FloatArray:
    """The δ of one event: several may each go wrong, so together they need the union bound."""
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
