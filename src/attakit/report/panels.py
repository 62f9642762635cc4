"""What the plots show, as numbers: panels of lines and points, from runs only."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attakit.report.curves import Band, average, bands, recorded, smoothed_accuracy
from attakit.report.lineup import Entrant, RunReader, final, line_up, orders_of, with_remark
from attakit.report.runs import Group, RunRecord
from attakit.report.streams import by_conditions, is_pool, stream_name
from attakit.report.summaries import MeanStd, final_figures


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a panel, with deviations where there are several runs."""

    x: MeanStd
    y: MeanStd


@dataclass(frozen=True, slots=True)
class Trace:
    """One method in a panel; `level` draws a single point as a line across."""

    label: str
    points: tuple[Point, ...]
    level: bool = False
    marked: bool = True


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x_title: str
    y_title: str
    traces: tuple[Trace, ...]
    log_x: bool = False
    bands: tuple[Band, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(trace.points for trace in self.traces)


_ALONG = "accuracy along the stream (%)"
_BUDGET = re.compile(r" \(B [≤=] \w+\)$")

PanelRows = list[list[Panel]]


def split_mean(run: RunRecord) -> float | None:
    """Accuracy averaged over the domains or splits of the stream, as the paper's ablation does."""
    segments = list((final_figures(run).get("segments") or {}).values())
    known = [value for value in segments if value is not None]
    return statistics.fmean(known) if known and len(known) == len(segments) else None


def source_after(run: RunRecord) -> float | None:
    """Accuracy on held-out source samples after the stream; on all of it where that is missing."""
    held_out = final("source_accuracy")(run)
    return final("source_accuracy_whole")(run) if held_out is None else held_out


def labels_panels(runs: Sequence[RunRecord]) -> PanelRows:
    """Accuracy along the stream against labels used, one panel per data set and stream."""
    return _per_stream(runs, _against_labels)


def seconds_panels(runs: Sequence[RunRecord]) -> PanelRows:
    """Accuracy along the stream against the seconds it took."""
    return _per_stream(runs, _against_seconds)


def ablation_panels(runs: Sequence[RunRecord]) -> PanelRows:
    """Target and source accuracy of variants: over budgets, or along the stream for one budget."""
    return _per_stream(runs, _ablation)


def _per_stream(
    runs: Sequence[RunRecord], draw: Callable[[str, str, Sequence[Entrant]], list[Panel]]
) -> PanelRows:
    """Data sets, and other settings of the stream, side by side; its orders one below the other.

    Runs over a pool are left out: they give no answers along a stream.
    """
    found = by_conditions([run for run in runs if not is_pool(run)])
    entrants = {with_remark(one.data_set, one.description): line_up(one.runs) for one in found}
    orders = orders_of([entrant for own in entrants.values() for entrant in own])
    return [
        [panel for name, own in entrants.items() for panel in draw(name, order, own)]
        for order in orders
    ]


def _points(
    entrants: Sequence[Entrant], order: str, x: RunReader, y: RunReader
) -> tuple[Point, ...]:
    pairs = [(entrant.figure(order, x), entrant.figure(order, y)) for entrant in entrants]
    return tuple(Point(a, b) for a, b in pairs if a is not None and b is not None)


def _by_label(entrants: Sequence[Entrant]) -> dict[str, list[Entrant]]:
    """Entrants that are one method with several budgets, which its label may name."""
    grouped: dict[str, list[Entrant]] = {}
    for entrant in entrants:
        label = _BUDGET.sub("", entrant.label)
        name = f"{label} ({entrant.variant})" if entrant.variant else label
        grouped.setdefault(name, []).append(entrant)
    return grouped


def _against_labels(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    y = final("stream_accuracy")
    traces = [
        Trace(label, _points(own, order, final("labels"), y), level=own[0].budget is None)
        for label, own in _by_label(entrants).items()
    ]
    title = f"{data_set}, {stream_name(order)} stream"
    return [Panel(title, "labels used", _ALONG, tuple(traces))]


def _against_seconds(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    traces = [
        Trace(label, _points(own, order, final("seconds"), final("stream_accuracy")))
        for label, own in _by_label(entrants).items()
    ]
    title = f"{data_set}, {stream_name(order)} stream"
    return [Panel(title, "seconds", _ALONG, tuple(traces), log_x=True)]


def _ablation(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    where = f"{data_set}, {stream_name(order)} stream"
    titles = (f"{where}: targets", f"{where}: source")
    if any(len(own) > 1 for own in _by_label(entrants).values()):
        y_titles = (f"{_ALONG},\nmean of segments", "accuracy after the stream (%)")
        reads = zip(titles, y_titles, (split_mean, source_after), strict=True)
        return [_over_budgets(title, y, order, entrants, read) for title, y, read in reads]
    y_titles = (f"{_ALONG},\nsmoothed", _ALONG)
    curves = zip(titles, y_titles, (smoothed_accuracy, recorded("source_accuracy")), strict=True)
    return [_along(title, y, order, entrants, read) for title, y, read in curves]


def _over_budgets(
    title: str, y_title: str, order: str, entrants: Sequence[Entrant], read: RunReader
) -> Panel:
    traces = [
        Trace(label, _points(own, order, final("labels"), read), level=own[0].budget is None)
        for label, own in _by_label(entrants).items()
    ]
    return Panel(title, "labels used", y_title, tuple(traces))


def _along(
    title: str,
    y_title: str,
    order: str,
    entrants: Sequence[Entrant],
    read: Callable[[RunRecord], list[float | None]],
) -> Panel:
    traces: list[Trace] = []
    found: list[Band] = []
    for entrant in entrants:
        runs = entrant.runs.get(order, ())
        if any(run.steps for run in runs):
            curve = average(Group(entrant.full_label, runs), read)
            known = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
            points = tuple(Point(MeanStd(float(x)), MeanStd(y)) for x, y in known)
            traces.append(Trace(entrant.full_label, points, marked=False))
            found = found or bands(runs[0])
    return Panel(title, "samples seen", y_title, tuple(traces), bands=tuple(found))
