"""The content of plots as numbers: panels of lines and points, from runs only."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from attakit.report.curves import Band, average, bands, recorded, smoothed_accuracy
from attakit.report.lineup import Entrant, RunReader, final, line_up, orders_of, with_remark
from attakit.report.runs import RunRecord, grouped
from attakit.report.streams import SameConditions, by_model, is_pool, stream_name
from attakit.report.summaries import MeanStd, final_figures, mean_of_all


@dataclass(frozen=True, slots=True)
class Point:
    """A position in a panel, with deviations if there are several runs."""

    x: MeanStd
    y: MeanStd


@dataclass(frozen=True, slots=True)
class Trace:
    """One method in a panel; `level` draws a single point as a horizontal line."""

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


class Axis(NamedTuple):
    """What an axis shows, and how to read it from a run."""

    title: str
    read: RunReader


_ALONG = "accuracy along the stream (%)"
_LABELS, _SECONDS = Axis("labels used", final("labels")), Axis("seconds", final("seconds"))
_ACCURACY = Axis(_ALONG, final("stream_accuracy"))
_BUDGET = re.compile(r" \(B [≤=] \w+\)$")

PanelRows = list[list[Panel]]


def split_mean(run: RunRecord) -> float | None:
    """Return the mean accuracy over the stream's domains or splits, as in the paper's ablation."""
    return mean_of_all((final_figures(run).get("segments") or {}).values())


def source_after(run: RunRecord) -> float | None:
    """Return the accuracy on held-out source samples after the stream, or on all of it."""
    held_out = final("source_accuracy")(run)
    return final("source_accuracy_whole")(run) if held_out is None else held_out


def plot_panels(kind: str, runs: Sequence[RunRecord]) -> PanelRows:
    """Build the panels of a plot: data sets, models and other stream settings side by side.

    Stream orders are in rows. Pool runs are excluded, because they give no answers along a stream.
    """
    found = by_model([run for run in runs if not is_pool(run)])
    several = len({one.model for one in found}) > 1
    entrants = {_column(one, with_model=several): line_up(one.runs) for one in found}
    orders = orders_of([entrant for own in entrants.values() for entrant in own])
    return [
        [panel for name, own in entrants.items() for panel in PLOTS[kind](name, order, own)]
        for order in orders
    ]


def _column(one: SameConditions, *, with_model: bool) -> str:
    model = one.model if with_model else ""
    return with_remark(one.data_set, ", ".join(filter(None, (model, one.description))))


def _points(
    entrants: Sequence[Entrant], order: str, x: RunReader, y: RunReader
) -> tuple[Point, ...]:
    pairs = [(entrant.figure(order, x), entrant.figure(order, y)) for entrant in entrants]
    return tuple(Point(a, b) for a, b in pairs if a is not None and b is not None)


def _by_label(entrants: Sequence[Entrant]) -> dict[str, list[Entrant]]:
    """Group entrants that are one method with several budgets."""
    return grouped(
        entrants, lambda entrant: with_remark(_BUDGET.sub("", entrant.label), entrant.variant)
    )


def _figures(
    title: str, order: str, entrants: Sequence[Entrant], x: Axis, y: Axis, *, levels: bool = True
) -> Panel:
    """Make a trace per method from numbers of whole runs; `levels` draws those without labels."""
    traces = tuple(
        Trace(label, _points(own, order, x.read, y.read), level=levels and own[0].budget is None)
        for label, own in _by_label(entrants).items()
    )
    return Panel(title, x.title, y.title, traces)


def _against_labels(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    """Plot accuracy along the stream against labels used, over budgets or within runs."""
    title = f"{data_set}, {stream_name(order)} stream"
    whole = _figures(title, order, entrants, _LABELS, _ACCURACY)
    if any(len(trace.points) > 1 for trace in whole.traces):
        return [whole]
    within = {label: _within(own[0], order) for label, own in _by_label(entrants).items()}
    traces = tuple(
        Trace(trace.label, within[trace.label], marked=False)
        if not trace.level and len(within[trace.label]) > 1
        else trace
        for trace in whole.traces
    )
    return [Panel(title, "labels so far", f"{_ALONG}, so far", traces)]


def _within(entrant: Entrant, order: str) -> tuple[Point, ...]:
    """Return labels and accuracy so far after each step, averaged over the runs of a method."""
    runs = [run for run in entrant.runs.get(order, ()) if run.steps]
    points = []
    for steps in zip(*(run.steps for run in runs), strict=False):
        labels = mean_of_all(step.get("received") for step in steps)
        accuracy = mean_of_all(step.get("stream_accuracy") for step in steps)
        if labels is not None and accuracy is not None:
            points.append(Point(MeanStd(labels), MeanStd(accuracy)))
    return tuple(points)


def _against_seconds(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    """Plot accuracy along the stream against the seconds it took."""
    title = f"{data_set}, {stream_name(order)} stream"
    panel = _figures(title, order, entrants, _SECONDS, _ACCURACY, levels=False)
    return [replace(panel, log_x=True)]


def _ablation(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    """Plot target and source accuracy of variants, over budgets or along the stream."""
    where = f"{data_set}, {stream_name(order)} stream"
    titles = (f"{where}: targets", f"{where}: source")
    if any(len(own) > 1 for own in _by_label(entrants).values()):
        axes = (
            Axis(f"{_ALONG},\nmean of segments", split_mean),
            Axis("accuracy after the stream (%)", source_after),
        )
        return [
            _figures(title, order, entrants, _LABELS, axis)
            for title, axis in zip(titles, axes, strict=True)
        ]
    y_titles = (f"{_ALONG},\nsmoothed", _ALONG)
    curves = zip(titles, y_titles, (smoothed_accuracy, recorded("source_accuracy")), strict=True)
    return [_along(title, y, order, entrants, read) for title, y, read in curves]


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
            curve = average(runs, read)
            known = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
            points = tuple(Point(MeanStd(float(x)), MeanStd(y)) for x, y in known)
            traces.append(Trace(entrant.full_label, points, marked=False))
            found = found or bands(runs[0])
    return Panel(title, "samples seen", y_title, tuple(traces), bands=tuple(found))


def _along_the_stream(data_set: str, order: str, entrants: Sequence[Entrant]) -> list[Panel]:
    """Plot accuracy around each moment of the stream."""
    title = f"{data_set}, {stream_name(order)} stream"
    return [_along(title, f"{_ALONG},\nsmoothed", order, entrants, smoothed_accuracy)]


PLOTS: dict[str, Callable[[str, str, Sequence[Entrant]], list[Panel]]] = {
    "ablation": _ablation,
    "labels": _against_labels,
    "seconds": _against_seconds,
    "stream": _along_the_stream,
}
