"""What an analysis holds: distances, steps, and the run as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from attakit.paper.theory.divergence import Divergence, Hypotheses


@dataclass(frozen=True, slots=True)
class Distances:
    """Estimated HΔH-distances at a step; None where a set is missing or too small.

    Parameters
    ----------
    source_stream
        d(D_S, U), source and stream so far, thinned to as many samples as D_l has, so that it
        can be compared with d(D_S, D_l).
    source_low, source_high
        d(D_S, D_l) and d(D_S, D_h), source and either anchor set.
    low_stream
        d(D_l, U), source-like anchors and stream so far: the divergence in A.
    """

    source_stream: Divergence | None = None
    source_low: Divergence | None = None
    source_high: Divergence | None = None
    low_stream: Divergence | None = None


@dataclass(frozen=True, slots=True)
class StepAnalysis:
    """One step of a run as the theory sees it; None where it cannot be known.

    Parameters
    ----------
    step, samples
        Of the stream, the step itself and the samples up to it.
    low_count, high_count
        Source-like and labelled anchors.
    low_share, low_weight, best_weight
        λ₀, w₀ as used, and w₀* with A = d(D_l, U) and B² = complexity / N.
    distances
        Between source, stream and anchors.
    working_bound
        Bound on the target error with that A and B, which leave unknown constants out.
    target_bound, source_bound
        Bounds of Eq. 4.3a and Corollary 4 in full.
    target_error, source_error
        Shares of wrong answers: on the stream so far, and on held-out source samples.
    """

    step: int
    samples: int
    low_count: int | None
    high_count: int | None
    low_share: float | None
    low_weight: float | None
    best_weight: float | None
    distances: Distances
    working_bound: float | None
    target_bound: float | None
    source_bound: float | None
    target_error: float | None
    source_error: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A run as the theory sees it.

    Parameters
    ----------
    label, is_finished
        Of the run.
    has_features
        Whether the run recorded features; without them no distance is known.
    hypotheses, dimension, complexity, delta
        Class of the discriminators, d (None without features), c₁²d and δ.
    steps
        Those that were analysed.
    """

    label: str
    is_finished: bool
    has_features: bool
    hypotheses: Hypotheses
    dimension: int | None
    complexity: float
    delta: float
    steps: tuple[StepAnalysis, ...]
