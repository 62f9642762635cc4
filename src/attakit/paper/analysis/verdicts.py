"""An analysis in plain words."""

from __future__ import annotations

from bisect import bisect_left

from attakit.paper.analysis.analysis_records import Analysis, Distances, StepAnalysis
from attakit.paper.analysis.run_analysis import term
from attakit.paper.theory.divergence import Divergence
from attakit.paper.theory.terms import gap_term

_MOST_ERROR = 1.0  # a bound above it holds for any model


def verdicts(analysis: Analysis) -> list[str]:
    """Describe the last analysed step, one sentence each."""
    last = analysis.steps[-1]
    lines = [
        *_about_source_like(analysis),
        *_about_weights(analysis, last),
        *_about_bounds(analysis, last),
    ]
    if not analysis.has_features:
        lines.append(
            "distances are unknown: the run recorded no features. Run it with "
            "--set report.features=true."
        )
    return lines


def is_source_like(distances: Distances) -> str | None:
    """Return whether d(D_S, D_l) < d(D_S, U), the condition of Corollary 4: yes, no or unclear.

    Unclear if the two intervals overlap.
    """
    low, stream = distances.source_low, distances.source_stream
    if low is None or stream is None:
        return None
    if low.high < stream.low:
        return "yes"
    return "no" if low.low >= stream.high else "unclear"


def _about_source_like(analysis: Analysis) -> list[str]:
    answers = [is_source_like(step.distances) for step in analysis.steps]
    known = [answer for answer in answers if answer is not None]
    if not known:
        return []
    now = analysis.steps[-1].distances
    lines = []
    if answers[-1] is not None and now.source_low is not None and now.source_stream is not None:
        lines.append(
            f"source-like set is source-like: {answers[-1]} "
            f"({_compared(now.source_low, now.source_stream, answers[-1])})"
        )
    share = f"{known.count('yes')} of {len(known)}"
    lines.append(f"the condition of Corollary 4 held clearly at {share} analysed steps")
    return lines


def _compared(low: Divergence, stream: Divergence, answer: str) -> str:
    if answer == "unclear":
        return f"{low.value:.2f} and {stream.value:.2f}, and their intervals overlap"
    return f"{low.value:.2f} {'<' if answer == 'yes' else '≥'} {stream.value:.2f}"


def _about_weights(analysis: Analysis, step: StepAnalysis) -> list[str]:
    if step.low_weight is None or step.low_share is None:
        return ["there are no anchor sets to weigh at the last analysed step"]
    if step.low_count == 0:
        return [f"nothing to weigh: {_count(step)} labelled samples, and no source-like ones"]
    sentence = (
        f"weight of the source-like set: {step.low_weight:.2f} used, its share is "
        f"{step.low_share:.2f} ({step.low_count} of {_count(step)} samples)"
    )
    if step.best_weight is None or step.distances.low_stream is None:
        return [sentence]
    gap = (analysis.complexity / _count(step)) ** 0.5
    return [
        f"{sentence}, the bound is lowest at {step.best_weight:.2f} "
        f"(A = {step.distances.low_stream.value:.2f}, B = {gap:.2f})"
    ]


def _about_bounds(analysis: Analysis, step: StepAnalysis) -> list[str]:
    lines = []
    if step.working_bound is not None and step.target_error is not None:
        lines.append(
            f"target error above its best: at most {step.working_bound:.2f} with these A and B, "
            f"which leave constants out; {step.target_error:.2f} of the answers were wrong"
        )
    if step.trained_stages and step.dimension is None:
        lines.append(
            "the bounds in full do not apply: stages of the network train too, so the head alone "
            "has no dimension to count. --dimension sets one."
        )
    lines += _in_full("target", step.target_bound, step.target_error, _parts(analysis, step))
    lines += _in_full("source", step.source_bound, step.source_error, "")
    return lines


def _in_full(name: str, bound: float | None, error: float | None, parts: str) -> list[str]:
    if bound is None:
        return []
    seen = "" if error is None else f", {error:.2f} seen"
    tight = "the bound says nothing" if bound > _MOST_ERROR else "the bound says something"
    return [f"{name} error above its best, in full: at most {bound:.1f}{seen}: {tight}{parts}"]


def _parts(analysis: Analysis, step: StepAnalysis) -> str:
    """Explain where the bound on the target error comes from."""
    distance, size = step.distances.low_stream, step.dimension
    if size is not None and step.low_count == 0:
        needed = _labels_needed(size, analysis.delta)
        return (
            f" (dimension {size:,.0f}, {_count(step):,} labels; below 1 from {needed:,} labels on)"
        )
    if distance is None or size is None or step.low_weight is None or step.target_bound is None:
        return ""
    shift = step.low_weight * distance.value
    slack = step.low_weight * (term(distance, size) - distance.value)
    gap = step.target_bound - shift - slack
    least = float(gap_term(_count(step), size, analysis.delta))
    off = "" if gap < least * 1.01 else f", of it {gap - least:.1f} because w₀ is not λ₀"
    return (
        f" ({shift:.1f} from the shift, {slack:.1f} from estimating it with "
        f"{min(distance.samples)} samples, {gap:.1f} from training on {_count(step)}{off})"
    )


def _labels_needed(dimension: float, delta: float) -> int:
    """Return how many labels bring the bound on the target error below 1.

    >>> _labels_needed(10, 0.05)
    115
    """
    enough = 1
    while float(gap_term(enough, dimension, delta)) > _MOST_ERROR:
        enough *= 2
    return 1 + bisect_left(
        range(1, enough + 1), True, key=lambda n: bool(gap_term(n, dimension, delta) <= _MOST_ERROR)
    )


def _count(step: StepAnalysis) -> int:
    return max(1, (step.low_count or 0) + (step.high_count or 0))
