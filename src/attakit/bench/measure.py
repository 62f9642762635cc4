"""What a run measures in addition to its stream: before it, during it, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

import torch

from attakit.bench.run_state import RunState
from attakit.bench.score import score_everything, score_held_out
from attakit.build.task import ProgressCallback, no_progress
from attakit.methods.pool import PoolAdaptation
from attakit.queries import SampleId
from attakit.records import StepResult
from attakit.report.jsonlines import peak_memory_mb


def measure_before(state: RunState, scoring: ProgressCallback) -> Mapping[str, Any]:
    """Measure what the source model knows, for the first line of the results."""
    if _segment_ends(state):
        return _score_domains(state, scoring)
    if not state.experiment.report.source_every:
        return {}
    return score_held_out(state.method, state.task, scoring)


def measure_steps(state: RunState) -> Callable[[StepResult], Mapping[str, Any]]:
    """Return a function that adds numbers to the line of a step, every few steps."""
    every, last = state.experiment.report.source_every, len(state.stream) - 1
    ends = _segment_ends(state)

    def measure(result: StepResult) -> Mapping[str, Any]:
        found, step = _pool_accuracy(state, result), result.batch.step
        if not ends.isdisjoint(result.batch.samples):
            return {**found, **_score_domains(state)}
        if every and (step % every == 0 or step == last):
            return {**found, **score_held_out(state.method, state.task)}
        return found

    return measure


def _pool_accuracy(state: RunState, result: StepResult) -> dict[str, float]:
    """Return the accuracy on the whole pool before the round, if this is a pool run."""
    method = state.method
    if not isinstance(method, PoolAdaptation) or method.seen is None or not result.batch.samples:
        return {}
    labels = torch.tensor([state.stream.truth.labels[name] for name in method.seen.samples])
    right = method.seen.logits.argmax(dim=1).cpu() == labels
    return {"pool_accuracy": 100 * float(right.double().mean())}


def measure_end(state: RunState, scoring: ProgressCallback) -> dict[str, Any]:
    """Return the numbers of the whole run, for the last line of the results."""
    labelled = state.stream.originals(state.ledger.labelled)
    return {
        "stream_accuracy": state.accuracy.stream,
        "segments": state.accuracy.segments,
        "labels": state.ledger.received,
        "answers": state.ledger.counts,
        "cost": state.ledger.cost,
        "asked": state.ledger.asked,
        "seconds": state.seconds,
        "updates": state.updates,
        "peak_memory_mb": peak_memory_mb(),
        **({} if state.experiment.pool else {"setup_seconds": state.setup_seconds}),
        **_final_scores(state, labelled, scoring),
    }


def _final_scores(
    state: RunState, labelled: Set[SampleId], scoring: ProgressCallback
) -> dict[str, Any]:
    """Return the final accuracy: on the source, and on whole domains if requested."""
    if not state.experiment.report.post_adaptation:
        return score_held_out(state.method, state.task, scoring)
    scores = score_everything(state.method, state.task, scoring)
    return {
        **scores.source(),
        "post_adaptation": scores.per_domain(),
        "post_adaptation_unlabelled": scores.per_domain(without=labelled),
    }


def _segment_ends(state: RunState) -> frozenset[SampleId]:
    """Return the last sample of each segment, if the experiment scores all domains there."""
    if not state.experiment.report.domains_after_each or state.experiment.pool:
        return frozenset()
    # A later sample of a segment replaces an earlier one, so the last one stays.
    segments = state.stream.truth.segments
    return frozenset({name: sample for sample, name in segments.items()}.values())


def _score_domains(state: RunState, scoring: ProgressCallback = no_progress) -> dict[str, Any]:
    """Return the current accuracy on every domain and the source: the paper's complete results."""
    scores = score_everything(state.method, state.task, scoring)
    return {"domains": scores.per_domain(), **scores.source()}
