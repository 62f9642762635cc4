"""Figures of runs, averaged over seeds, from JSON lines only."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attakit.report.accuracy import percent
from attakit.report.runs import Group, RunRecord, group_runs


@dataclass(frozen=True, slots=True)
class Number:
    """A number as printed in the paper, with its standard deviation where one is printed."""

    value: float
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over runs with its standard deviation (None for a single run)."""

    mean: float
    deviation: float | None = None

    @staticmethod
    def of(values: Iterable[float | None]) -> Figure | None:
        """Average what is there; None when nothing is.

        >>> Figure.of([1.0, None, 3.0])
        Figure(mean=2.0, deviation=1.4142135623730951)
        """
        known = [float(value) for value in values if value is not None]
        if not known:
            return None
        deviation = statistics.stdev(known) if len(known) > 1 else None
        return Figure(statistics.fmean(known), deviation)


@dataclass(frozen=True, slots=True)
class Row:
    """One method in a table; accuracies in percent.

    Parameters
    ----------
    label
        Name of the method, with settings where one method was run with several.
    runs, unfinished
        How many runs the figures come from, and how many of them are not finished.
    stream, segments
        Accuracy over the whole stream, and over each of its segments.
    source, source_before
        Accuracy on held-out source samples after and before the run.
    labels, seconds, memory_mb
        Labels received, time of the method, and peak memory of the process.
    after
        Accuracy of the model, as the run left it, on each domain.

    Examples
    --------
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"labels": 12, "seconds": 3.5})
    >>> (row,) = summarise([run])
    >>> row.labels, row.stream
    (Figure(mean=12.0, deviation=None), None)
    """

    label: str
    runs: int
    unfinished: int
    stream: Figure | None
    segments: Mapping[str, Figure]
    source: Figure | None
    source_before: Figure | None
    labels: Figure | None
    seconds: Figure | None
    memory_mb: Figure | None
    after: Mapping[str, Figure]


def summarise(runs: Sequence[RunRecord]) -> list[Row]:
    """Make one row per method, averaged over seeds.

    Runs that are not finished count with what they have so far.

    >>> end = {"kind": "end", "stream_accuracy": 80.0}
    >>> run = RunRecord({"seed": 1, "method": {"name": "tent"}}, {}, [], [], [], end)
    >>> [(row.label, row.stream) for row in summarise([run])]
    [('tent', Figure(mean=80.0, deviation=None))]
    """
    return [_row(group) for group in group_runs(runs)]


def _row(group: Group) -> Row:
    ends = [final_figures(run) for run in group.runs]

    def figure(name: str) -> Figure | None:
        return Figure.of(end.get(name) for end in ends)

    return Row(
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
    )


def _per_name(values: Sequence[Mapping[str, float | None]]) -> dict[str, Figure]:
    names = list(dict.fromkeys(name for mapping in values for name in mapping))
    figures = {name: Figure.of(mapping.get(name) for mapping in values) for name in names}
    return {name: figure for name, figure in figures.items() if figure is not None}


def final_figures(run: RunRecord) -> dict[str, Any]:
    """What the end line says, and where it says nothing, what the steps tell."""
    last = run.steps[-1] if run.steps else {}
    figures: dict[str, Any] = {
        "stream_accuracy": last.get("stream_accuracy"),
        "segments": _segment_accuracy(run.steps),
        "source_accuracy": _last_known(run.steps, "source_accuracy"),
        "source_accuracy_before": run.before.get("source_accuracy"),
        "labels": last.get("received"),
        "seconds": sum(step.get("seconds") or 0.0 for step in run.steps),
        "peak_memory_mb": last.get("memory_mb"),
    }
    told = {name: value for name, value in (run.end or {}).items() if value is not None}
    return {**figures, **told}


def _segment_accuracy(steps: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    counts: dict[str, tuple[int, int]] = {}
    for step in steps:
        for name, (correct, counted) in (step.get("segments") or {}).items():
            before = counts.get(name, (0, 0))
            counts[name] = (before[0] + correct, before[1] + counted)
    return {name: percent(count) for name, count in counts.items()}


def _last_known(steps: Sequence[Mapping[str, Any]], name: str) -> float | None:
    return next((s[name] for s in reversed(steps) if s.get(name) is not None), None)


def best_rows(rows: Sequence[Row], pick: Callable[[Row], Figure | None]) -> set[int]:
    """Positions of the rows with the highest mean, as far as one decimal shows it.

    A single row has no rival, so nothing is best.
    """
    means = {
        place: round(figure.mean, 1)
        for place, row in enumerate(rows)
        if (figure := pick(row)) is not None
    }
    if len(means) < 2:
        return set()
    return {place for place, mean in means.items() if mean == max(means.values())}
