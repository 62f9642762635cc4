"""Curves along the stream for the report: smoothed, averaged over seeds, thinned."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from attakit.report.accuracy import RightCount, percent
from attakit.report.colours import colour_places
from attakit.report.runs import Group, RunRecord

CurveValues = list[float | None]

MAX_POINTS = 240
_MAX_BANDS = 12
_WINDOWS = 14  # the smoothing window is this part of the stream
_DECIMALS = 2


@dataclass(frozen=True, slots=True)
class Band:
    """A part of the stream in one segment; its ends count samples."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Curve:
    """One method's line; `low` and `high` are its range over seeds."""

    x: list[int]  # samples seen
    y: CurveValues
    low: CurveValues
    high: CurveValues


def samples_seen(run: RunRecord) -> list[int]:
    """Return how many samples had been answered after each step."""
    return list(accumulate(int(step.get("size") or 0) for step in run.steps))


def step_segments(run: RunRecord) -> list[str | None]:
    """Return the segment of most samples of each step; None if no segment has half."""
    names: list[str | None] = []
    for step in run.steps:
        counts = {name: counted for name, (_, counted) in (step.get("segments") or {}).items()}
        largest = max(counts, key=lambda name: counts[name], default=None)
        clear = largest is not None and 2 * counts[largest] >= sum(counts.values())
        names.append(largest if clear else None)
    return names


def bands(run: RunRecord) -> list[Band]:
    """Return parts of the stream with one segment; none if they alternate too quickly to show."""
    found: list[Band] = []
    start = 0
    for name, stop in zip(step_segments(run), samples_seen(run), strict=True):
        if name is not None:
            if found and found[-1].name == name and found[-1].stop == start:
                found[-1] = Band(name, found[-1].start, stop)
            else:
                found.append(Band(name, start, stop))
        start = stop
    return found if len(found) <= _MAX_BANDS else []


def smoothed_accuracy(run: RunRecord) -> CurveValues:
    """Return the accuracy around each step, never averaged across two segments."""
    counts: list[RightCount] = [
        (int(step.get("correct") or 0), int(step.get("counted") or 0)) for step in run.steps
    ]
    segments = step_segments(run)
    reach = max(1, len(counts) // _WINDOWS) // 2 + (len(counts) >= _WINDOWS)
    series: CurveValues = []
    for here in range(len(counts)):
        near = range(max(0, here - reach), min(len(counts), here + reach + 1))
        same = [counts[other] for other in near if segments[other] == segments[here]]
        series.append(percent((sum(c for c, _ in same), sum(n for _, n in same))))
    return series


def recorded(name: str) -> Callable[[RunRecord], CurveValues]:
    """Return a reader for one number of the step lines."""
    return lambda run: [step.get(name) for step in run.steps]


def average(runs: Sequence[RunRecord], read: Callable[[RunRecord], CurveValues]) -> Curve:
    """Return mean and range over runs, at steps where at least one has a number."""
    longest = max(runs, key=lambda run: len(run.steps))
    series = [read(run) for run in runs]
    x, columns = [], []
    for step, seen in enumerate(samples_seen(longest)):
        values = [s[step] for s in series if step < len(s)]
        known = [value for value in values if value is not None]
        if known:
            x.append(seen)
            columns.append(known)
    keep = spread(range(len(x)), MAX_POINTS)
    return Curve(
        [x[place] for place in keep],
        [round(statistics.fmean(columns[place]), _DECIMALS) for place in keep],
        [round(min(columns[place]), _DECIMALS) for place in keep],
        [round(max(columns[place]), _DECIMALS) for place in keep],
    )


def spread(items: Sequence[Any], limit: int) -> list[Any]:
    """Return at most `limit` items, evenly spread over the sequence.

    >>> spread("abcdefg", 3)
    ['a', 'd', 'g']
    """
    if len(items) <= limit:
        return list(items)
    if limit < 2:
        return list(items[:limit])
    return [items[round(n * (len(items) - 1) / (limit - 1))] for n in range(limit)]


def curve_sets(groups: Sequence[Group]) -> dict[str, list[dict[str, Any]]]:
    """Return all curves of the report, by chart; one entry per method."""
    readers: dict[str, Callable[[RunRecord], CurveValues]] = {
        "around": smoothed_accuracy,
        "so_far": recorded("stream_accuracy"),
        "labels": recorded("received"),
        "source": recorded("source_accuracy"),
    }
    places = colour_places(group.label for group in groups)
    return {
        name: [_as_data(group, average(group.runs, read), places[group.label]) for group in groups]
        for name, read in readers.items()
    }


def _as_data(group: Group, curve: Curve, place: int) -> dict[str, Any]:
    data = {"name": group.label, "place": place, "x": curve.x, "y": curve.y}
    return data if len(group.runs) == 1 else {**data, "low": curve.low, "high": curve.high}
