"""The words and figures at the top and the bottom of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attakit.report.figures import Figure, Row, best_rows
from attakit.report.lines import as_json
from attakit.report.runs import Group
from attakit.report.tables import columns, run_count, show


def names_in(mappings: Iterable[Mapping[str, Figure]]) -> list[str]:
    """All names in order of appearance."""
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def facts(groups: Sequence[Group]) -> list[str]:
    """What was done, in a few words each."""
    runs = [run for group in groups for run in group.runs]
    counts = [len(group.runs) for group in groups]
    few, many = min(counts), max(counts)
    each = _count(many, "run") if few == many else f"{few} to {_count(many, 'run')}"
    samples = max(sum(step.get("size") or 0 for step in run.steps) for run in runs)
    told = [
        _count(len(groups), "method"),
        f"{each} each" if len(groups) > 1 else each,
        f"{samples:,} samples in {max(len(run.steps) for run in runs):,} steps",
    ]
    segments = runs[0].segments
    if segments and all(run.segments == segments for run in runs):
        told.append(" → ".join(segments))
    return told


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def tiles(rows: Sequence[Row], groups: Sequence[Group]) -> list[dict[str, str]]:
    """The three figures of the method that answered best."""
    best = best_row(rows)
    if best is None:
        return []
    samples = max(sum(s.get("size") or 0 for s in r.steps) for g in groups for r in g.runs)
    what = "Best on the stream" if len(rows) > 1 else "Right on the stream"
    shown = [{"what": what, "value": _in_percent(best.stream), "note": best.label}]
    if best.labels is not None and samples:
        share = 100 * best.labels.mean / samples
        note = f"{share:.1f} % of {samples:,} samples"
        shown.append({"what": "Labels it used", "value": f"{best.labels.mean:,.0f}", "note": note})
    if best.source is not None:
        before = f"{best.source_before.mean:.1f} % before" if best.source_before else "held out"
        value = _in_percent(best.source)
        shown.append({"what": "Source samples after", "value": value, "note": before})
    return shown


def best_row(rows: Sequence[Row]) -> Row | None:
    """The row with the highest accuracy on the stream."""
    known = [row for row in rows if row.stream is not None]
    return max(known, key=lambda row: row.stream.mean if row.stream else 0.0, default=None)


def _in_percent(figure: Figure | None) -> str:
    return "–" if figure is None else f"{figure.mean:.1f} %"


def summary_table(rows: Sequence[Row]) -> dict[str, Any]:
    """The table as texts, each with whether it is the best of its column."""
    chosen = columns(rows)
    best = {column.title: best_rows(rows, column.pick) for column in chosen if column.is_accuracy}
    body = []
    for place, row in enumerate(rows):
        texts = [
            (show(column.pick(row), column.decimals), place in best.get(column.title, set()))
            for column in chosen
        ]
        body.append({"label": row.label, "cells": texts, "runs": run_count(row)})
    return {"titles": [column.title for column in chosen], "rows": body}


def settings_of(group: Group) -> dict[str, Any]:
    """Settings and environment of a group's first run, by their dotted names."""
    first = group.runs[0]
    seeds = ", ".join(str(run.seed) for run in group.runs)
    return {
        "label": group.label,
        "seeds": seeds,
        "experiment": _flat(first.experiment),
        "environment": _flat(first.environment),
    }


def _flat(value: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, item in value.items():
        if isinstance(item, dict):
            pairs += _flat(item, f"{prefix}{name}.")
        else:
            pairs.append((prefix + name, item if isinstance(item, str) else as_json(item)))
    return pairs
