"""What a run measures beside its stream: before it, on the way, and at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from attakit.bench.after_segment import AfterSegment
from attakit.bench.run_state import RunState
from attakit.bench.score import score_everything, score_held_out
from attakit.build.task import Counting, Task
from attakit.label.ledger import Ledger
from attakit.protocols import Method
from attakit.queries import SampleId
from attakit.records import StepResult
from attakit.report.jsonlines import peak_memory_mb
from attakit.settings.experiment import Experiment


def measure_before(state: RunState, scoring: Counting) -> Mapping[str, Any]:
    """What the source model knows, for the first line of the results."""
    check = _after_segment(state)
    if check is not None:
        return check.measure(scoring)
    if not state.experiment.report.source_every:
        return {}
    return score_held_out(state.method, state.task, scoring)


def measure_steps(state: RunState) -> Callable[[StepResult], Mapping[str, Any]]:
    """Makes what adds further figures to the line of a step, every so often."""
    every, last = state.experiment.report.source_every, len(state.stream) - 1
    check = _after_segment(state)

    def measure(result: StepResult) -> Mapping[str, Any]:
        found = {} if check is None else check(result)
        step = result.batch.step
        if found or not every or (step % every and step != last):
            return found
        return score_held_out(state.method, state.task)

    return measure


def measure_end(state: RunState, scoring: Counting) -> dict[str, Any]:
    """The figures of the whole run, for the last line of the results."""
    labelled = state.stream.originals(state.ledger.labelled)
    return {
        "stream_accuracy": state.accuracy.stream,
        "segments": state.accuracy.segments,
        **spent(state.ledger, state.seconds, state.updates),
        "setup_seconds": state.setup_seconds,
        **final_scores(state.experiment, state.method, state.task, labelled, scoring),
    }


def spent(ledger: Ledger, seconds: float, updates: int) -> dict[str, float | None]:
    """What a run has cost."""
    return {
        "labels": ledger.received,
        "asked": ledger.asked,
        "seconds": seconds,
        "updates": updates,
        "peak_memory_mb": peak_memory_mb(),
    }


def final_scores(
    experiment: Experiment,
    method: Method,
    task: Task,
    labelled: Set[SampleId],
    scoring: Counting,
) -> dict[str, Any]:
    """Accuracy at the end of a run: on the source, and on whole domains where that is wanted."""
    if not experiment.report.post_adaptation:
        return score_held_out(method, task, scoring)
    scores = score_everything(method, task, scoring)
    return {
        **scores.source(),
        "post_adaptation": scores.per_domain(),
        "post_adaptation_unlabelled": scores.per_domain(without=labelled),
    }


def _after_segment(state: RunState) -> AfterSegment | None:
    if not state.experiment.report.domains_after_each:
        return None
    return AfterSegment(state.method, state.task, state.stream.truth.segments)
