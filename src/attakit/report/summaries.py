"""Results of runs, averaged over seeds, from JSON lines only."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attakit.report.accuracy import percent
from attakit.report.runs import Group, RunRecord, group_runs


@dataclass(frozen=True, slots=True)
class MeanStd:
    """A mean over runs with its standard deviation (None for a single run)."""

    mean: float
    deviation: float | None = None

    @staticmethod
    def of(values: Iterable[float | None]) -> MeanStd | None:
        """Average the known values; None if there are none.

        >>> MeanStd.of([1.0, None, 3.0])
        MeanStd(mean=2.0, deviation=1.4142135623730951)
        """
        known = [float(value) for value in values if value is not None]
        if not known:
            return None
        deviation = statistics.stdev(known) if len(known) > 1 else None
        return MeanStd(statistics.fmean(known), deviation)


def mean_of_all(values: Iterable[float | None]) -> float | None:
    """Return the plain mean; None unless there are values and all are known."""
    known = list(values)
    numbers = [value for value in known if value is not None]
    return statistics.fmean(numbers) if numbers and len(numbers) == len(known) else None


@dataclass(frozen=True, slots=True)
class MethodSummary:
    """The results of one method, averaged over its runs; accuracies in percent.

    Examples
    --------
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"labels": 12, "seconds": 3.5})
    >>> (summary,) = summarise([run])
    >>> summary.labels, summary.stream
    (MeanStd(mean=12.0, deviation=None), None)
    """

    label: str  # the method's name, with settings if it was run with several
    runs: int
    unfinished: int  # number of unfinished runs
    stream: MeanStd | None  # over the whole stream
    segments: Mapping[str, MeanStd]  # over each segment of it
    source: MeanStd | None  # on held-out source samples after the run
    source_before: MeanStd | None  # on held-out source samples before the run
    labels: MeanStd | None  # answers received
    seconds: MeanStd | None  # time that the method took
    memory_mb: MeanStd | None  # peak of the process
    after: Mapping[str, MeanStd]  # accuracy of the final model on each domain
    cost: MeanStd | None = None  # in labels, if it is not their number


def summarise(runs: Sequence[RunRecord]) -> list[MethodSummary]:
    """Summarise each method, averaged over seeds.

    Unfinished runs count with what they have so far.

    >>> end = {"kind": "end", "stream_accuracy": 80.0}
    >>> run = RunRecord({"seed": 1, "method": {"name": "tent"}}, {}, [], [], [], end)
    >>> [(one.label, one.stream) for one in summarise([run])]
    [('tent', MeanStd(mean=80.0, deviation=None))]
    """
    return [_summary(group) for group in group_runs(runs)]


def _summary(group: Group) -> MethodSummary:
    ends = [final_figures(run) for run in group.runs]

    def figure(name: str) -> MeanStd | None:
        return MeanStd.of(end.get(name) for end in ends)

    return MethodSummary(
        group.label,
        len(group.runs),
        sum(not run.is_finished for run in group.runs),
        figure("stream_accuracy"),
        _per_name([end.get("segments") or {} for end in ends]),
        figure("source_accuracy"),
        figure("source_accuracy_before"),
        figure("labels"),
        figure("seconds"),
        figure("peak_memory_mb"),
        _per_name([end.get("post_adaptation") or {} for end in ends]),
        figure("cost") if any(has_own_cost(end) for end in ends) else None,
    )


def has_own_cost(end: Mapping[str, Any]) -> bool:
    """True if the answers of a run cost something other than a label each.

    >>> has_own_cost({"labels": 8, "cost": 2.0}), has_own_cost({"labels": 8})
    (True, False)
    """
    return end.get("cost") is not None and end["cost"] != end.get("labels")


def _per_name(values: Sequence[Mapping[str, float | None]]) -> dict[str, MeanStd]:
    names = list(dict.fromkeys(name for mapping in values for name in mapping))
    figures = {name: MeanStd.of(mapping.get(name) for mapping in values) for name in names}
    return {name: figure for name, figure in figures.items() if figure is not None}


def final_figures(run: RunRecord) -> dict[str, Any]:
    """Return the final numbers of a run; missing ones come from the steps so far."""
    last = run.steps[-1] if run.steps else {}
    figures: dict[str, Any] = {
        "stream_accuracy": last.get("stream_accuracy"),
        "segments": _segment_accuracy(run.steps),
        "source_accuracy": _last_known(run.steps, "source_accuracy"),
        "source_accuracy_before": run.before.get("source_accuracy"),
        "labels": last.get("received"),
        "cost": last.get("cost"),
        "seconds": sum(step.get("seconds") or 0.0 for step in run.steps),
        "peak_memory_mb": last.get("memory_mb"),
    }
    end = {name: value for name, value in (run.end or {}).items() if value is not None}
    return {**figures, **end}


def _segment_accuracy(steps: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    counts: dict[str, tuple[int, int]] = {}
    for step in steps:
        for name, (correct, counted) in (step.get("segments") or {}).items():
            before = counts.get(name, (0, 0))
            counts[name] = (before[0] + correct, before[1] + counted)
    return {name: percent(count) for name, count in counts.items()}


def _last_known(steps: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return next((s[name] for s in reversed(steps) if s.get(name) is not None), None)
