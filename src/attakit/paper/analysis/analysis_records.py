"""The records of an analysis: distances, steps, and the whole run."""

from __future__ import annotations

from dataclasses import dataclass

from attakit.paper.theory.divergence import Divergence, Hypotheses


@dataclass(frozen=True, slots=True)
class Distances:
    """Estimated HΔH-distances at a step; None if a set is missing or too small."""

    # d(D_S, U), with the same number of stream samples as D_l has, so that it compares to d(D_S,
    # D_l).
    source_stream: Divergence | None = None
    source_low: Divergence | None = None  # d(D_S, D_l), to the source-like anchors
    source_high: Divergence | None = None  # d(D_S, D_h), to the labelled anchors
    low_stream: Divergence | None = None  # d(D_l, U), the divergence in A


@dataclass(frozen=True, slots=True)
class StepAnalysis:
    """The theory's numbers for one step of a run; None if unknown."""

    step: int
    samples: int  # samples of the stream up to the step
    low_count: int | None  # source-like anchors
    high_count: int | None  # labelled anchors
    low_share: float | None  # λ₀
    low_weight: float | None  # w₀ as used
    best_weight: float | None  # w₀* with A = d(D_l, U) and B² = complexity / N
    distances: Distances  # between source, stream and anchors
    working_bound: float | None  # on the target error, with these A and B
    target_bound: float | None  # Eq. 4.3a, in full
    source_bound: float | None  # the bound of Corollary 4, in full
    target_error: float | None  # share of wrong answers on the stream so far
    source_error: float | None  # on held-out source samples
    dimension: float | None = None  # d: a head's own, or that of the whole analysis
    trained_stages: bool = False  # the network under a head learned from labels too


@dataclass(frozen=True, slots=True)
class Analysis:
    """The theory's numbers for a run."""

    label: str
    is_finished: bool
    has_features: bool  # without them no distance is known
    hypotheses: Hypotheses  # class of the discriminators
    dimension: int | None  # d; None without features
    complexity: float  # c₁²d
    delta: float  # δ
    steps: tuple[StepAnalysis, ...]  # those that were analysed
