"""Apply the theory to a run: weights, divergences and bounds, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attakit.errors import SettingError, check_count
from attakit.paper.analysis.analysis_records import Analysis, Distances, StepAnalysis
from attakit.paper.theory.bounds import two_set_source_bound
from attakit.paper.theory.divergence import Divergence, Hypotheses, estimate_divergence
from attakit.paper.theory.terms import divergence_term, gap_term
from attakit.randomness import generator
from attakit.report.curves import samples_seen, spread
from attakit.report.features import HIGH, LOW, STREAM, Array, FeatureRecord, read_features
from attakit.report.runs import RunRecord, read_run
from attakit.train.optimal_weight import FloatArray, optimal_low_weight, target_bound
from attakit.train.weighting import Weighting

DELTA = 0.05
MAX_STEPS = 12
_FEWEST_ROWS = 10  # a distance between smaller sets means nothing
_MOST_ROWS = 1000  # per set, so that an analysis takes seconds
_TOLD = {"low_share", "dimension", "trained_stages"}  # one of them is in every report on anchors

StepsCallback = Callable[[int, int], None]  # steps done, all steps


def analyse_run(
    folder: Path,
    *,
    hypotheses: Hypotheses = "linear",
    max_steps: int = MAX_STEPS,
    dimension: int | None = None,
    seed: int = 0,
    progress: StepsCallback = lambda _done, _total: None,
) -> Analysis:
    """Analyse a run, finished or live, from its folder alone.

    Parameters
    ----------
    folder
        The folder of the run.
    hypotheses
        Class of the domain discriminators: "linear" or "network".
    max_steps
        Number of steps to analyse, spread over those with features, or over all if none has.
    dimension
        VC dimension d of the bounds; by default that of a linear layer on the features, or of the
        head that a method reports. It is not known once stages of the network under a head train.
    seed
        Seed of the estimates.
    progress
        Called with (steps done, all steps).
    """
    check_count("analyse_run", "max_steps", max_steps)
    if dimension is not None:
        check_count("analyse_run", "dimension", dimension)
    run, features = read_run(folder), read_features(folder)
    if run.experiment.get("pool") is not None:
        raise SettingError(
            f"The run in {folder} went through a pool in rounds. It has no source-like samples and "
            "no stream, so there is nothing to weigh. Analyse a run along a stream."
        )
    if not run.steps:
        raise SettingError(f"The run in {folder} has no step yet. Try again a little later.")
    # A live run writes the two files one after the other: only steps in both are complete.
    known = [place for place, line in enumerate(run.steps) if line["step"] in features.steps]
    places = spread(known or range(len(run.steps)), max_steps)
    linear = _linear_dimension(features)
    steps = []
    for done, place in enumerate(places, 1):
        distances = _distances(features, run.steps[place]["step"], hypotheses, seed)
        numbers = _anchor_numbers(run, place)
        size = dimension or numbers.get("dimension") or (None if _has_head(numbers) else linear)
        steps.append(_analysed(run, place, numbers, distances, size))
        progress(done, len(places))
    return Analysis(
        run.label,
        run.is_finished,
        bool(known),
        hypotheses,
        dimension or linear,
        complexity_of(run),
        DELTA,
        tuple(steps),
    )


def complexity_of(run: RunRecord) -> float:
    """Return c₁²d of the run's weighting."""
    table: Any = run.experiment
    for name in ("method", "trainer", "weighting", "complexity"):
        table = table.get(name) if isinstance(table, Mapping) else None
    return float(table) if isinstance(table, int | float) else Weighting().complexity


def _linear_dimension(features: FeatureRecord) -> int | None:
    sets = [rows for named in features.steps.values() for rows in named.values()]
    return sets[0].shape[1] + 1 if sets else None


def _distances(features: FeatureRecord, step: int, hypotheses: Hypotheses, seed: int) -> Distances:
    if step not in features.steps:
        return Distances()
    now = features.steps[step]
    seen = [sets[STREAM] for at, sets in features.steps.items() if at <= step and STREAM in sets]
    stream = np.concatenate(seen) if seen else None

    def between(first: Array | None, second: Array | None) -> Divergence | None:
        if first is None or second is None or min(len(first), len(second)) < _FEWEST_ROWS:
            return None
        return estimate_divergence(
            first, second, hypotheses=hypotheses, max_samples=_MOST_ROWS, seed=seed
        )

    return Distances(
        between(features.source, _as_many(stream, now.get(LOW), seed)),
        between(features.source, now.get(LOW)),
        between(features.source, now.get(HIGH)),
        between(now.get(LOW), stream),
    )


def _as_many(stream: Array | None, low: Array | None, seed: int) -> Array | None:
    """Return as many samples of the stream as there are source-like ones, if there are enough.

    A discriminator finds less in fewer samples, so only sets of equal size can be compared.
    """
    if stream is None or low is None or not _FEWEST_ROWS <= len(low) < len(stream):
        return stream
    return stream[generator(seed, "analysed stream").permutation(len(stream))[: len(low)]]


def _analysed(
    run: RunRecord,
    place: int,
    numbers: Mapping[str, float],
    distances: Distances,
    dimension: float | None,
) -> StepAnalysis:
    line = run.steps[place]
    low, high = numbers.get("low_anchors"), numbers.get("high_anchors")
    return StepAnalysis(
        step=line["step"],
        samples=samples_seen(run)[place],
        low_count=None if low is None else int(low),
        high_count=None if high is None else int(high),
        low_share=numbers.get("low_share"),
        low_weight=numbers.get("low_weight"),
        distances=distances,
        target_error=_error(line.get("stream_accuracy")),
        source_error=_error(_last_source_accuracy(run, place)),
        dimension=dimension,
        trained_stages=bool(numbers.get("trained_stages")),
        **_bounds(numbers, distances, complexity_of(run), dimension),
    )


def _has_head(numbers: Mapping[str, float]) -> bool:
    """True if the numbers are those of a head that is fitted to labelled anchors alone."""
    return "anchors" in numbers


def _anchor_numbers(run: RunRecord, place: int) -> dict[str, float]:
    """Return the latest numbers about the anchors, at a step or before it.

    A head that is fitted to labelled anchors alone has no source-like ones: their share and weight
    are 0. It reports its number of features, which is its dimension unless stages of the network
    train too. Runs of earlier versions reported it then as well.
    """
    said = (line.get("training") or {} for line in reversed(run.steps[: place + 1]))
    numbers = dict(next((one for one in said if _TOLD & one.keys()), {}))
    if numbers.get("trained_stages"):
        numbers.pop("dimension", None)
    if _has_head(numbers):
        nothing = dict.fromkeys(("low_anchors", "low_share", "low_weight"), 0.0)
        numbers |= {**nothing, "high_anchors": numbers["anchors"]}
    return numbers


def _bounds(
    numbers: Mapping[str, float],
    distances: Distances,
    complexity: float,
    dimension: float | None,
) -> dict[str, float | None]:
    """Return w₀*, the bound that it minimises, and the paper's bounds with every constant.

    All but the first are at the weight that was used.
    """
    bounds = ("best_weight", "working_bound", "target_bound", "source_bound")
    found: dict[str, float | None] = dict.fromkeys(bounds)
    names = ("low_share", "low_weight", "low_anchors", "high_anchors")
    if any(numbers.get(name) is None for name in names):
        return found
    share, weight, low, high = (numbers[name] for name in names)
    apart, near, far = distances.low_stream, distances.source_low, distances.source_stream
    if apart is not None and low + high > 0:
        rough_gap = math.sqrt(complexity / (low + high))
        found["best_weight"] = float(optimal_low_weight(share, apart.value, rough_gap))
        found["working_bound"] = _finite(target_bound(weight, share, apart.value, rough_gap))
    if dimension is None:
        return found
    gap = gap_term(max(1, low + high), dimension, DELTA)
    if weight == 0 == share:
        found["target_bound"] = float(gap)  # no source-like samples, so no distance to them
    elif apart is not None:
        bound = target_bound(weight, share, term(apart, dimension), gap)
        found["target_bound"] = _finite(bound)
    if near is not None and far is not None:
        terms = term(near, dimension), term(far, dimension)
        found["source_bound"] = _finite(two_set_source_bound(weight, share, *terms, gap))
    return found


def term(distance: Divergence, dimension: float) -> float:
    """Return A for an estimated distance, without the unknown γ."""
    return float(
        divergence_term(
            distance.value, unlabelled=min(distance.samples), dimension=dimension, delta=DELTA
        )
    )


def _error(accuracy: float | None) -> float | None:
    return None if accuracy is None else 1 - accuracy / 100


def _finite(bound: FloatArray) -> float | None:
    return float(bound) if math.isfinite(bound) else None


def _last_source_accuracy(run: RunRecord, place: int) -> float | None:
    """Return the accuracy on held-out source samples, last measured at or before the step."""
    lines: Sequence[Mapping[str, Any]] = [run.before, *run.steps[: place + 1]]
    known = [line["source_accuracy"] for line in lines if line.get("source_accuracy") is not None]
    return known[-1] if known else None
