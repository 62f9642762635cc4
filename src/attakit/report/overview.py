"""Texts and numbers at the top and the bottom of the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attakit.report.lines import as_json
from attakit.report.runs import Group
from attakit.report.summaries import MeanStd, MethodSummary
from attakit.report.tables import ResultTable


def names_in(mappings: Iterable[Mapping[str, MeanStd]]) -> list[str]:
    """All names in order of appearance."""
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def facts(groups: Sequence[Group]) -> list[str]:
    """Describe what was done, in a few words each."""
    runs = [run for group in groups for run in group.runs]
    counts = [len(group.runs) for group in groups]
    few, many = min(counts), max(counts)
    each = _count(many, "run") if few == many else f"{few} to {_count(many, 'run')}"
    samples = max(sum(step.get("size") or 0 for step in run.steps) for run in runs)
    found = [
        _count(len(groups), "method"),
        f"{each} each" if len(groups) > 1 else each,
        f"{samples:,} samples in {max(len(run.steps) for run in runs):,} steps",
    ]
    segments = runs[0].segments
    if segments and all(run.segments == segments for run in runs):
        found.append(" → ".join(segments))
    return found


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def tiles(summaries: Sequence[MethodSummary], groups: Sequence[Group]) -> list[dict[str, str]]:
    """Return the three main numbers of the best method."""
    best = best_method(summaries)
    if best is None:
        return []
    samples = max(sum(s.get("size") or 0 for s in r.steps) for g in groups for r in g.runs)
    what = "Best accuracy" if len(summaries) > 1 else "Accuracy"
    shown = [{"what": what, "value": _in_percent(best.stream), "note": best.label}]
    if best.labels is not None and samples:
        share = 100 * best.labels.mean / samples
        note = f"{share:.1f} % of {samples:,} samples"
        shown.append({"what": "Labels used", "value": f"{best.labels.mean:,.0f}", "note": note})
    if best.source is not None:
        before = f"{best.source_before.mean:.1f} % before" if best.source_before else "held out"
        value = _in_percent(best.source)
        shown.append({"what": "Source accuracy after", "value": value, "note": before})
    return shown


def best_method(summaries: Sequence[MethodSummary]) -> MethodSummary | None:
    """Return the method with the highest accuracy on the stream."""
    known = [one for one in summaries if one.stream is not None]
    return max(known, key=lambda one: one.stream.mean if one.stream else 0.0, default=None)


def _in_percent(figure: MeanStd | None) -> str:
    return "–" if figure is None else f"{figure.mean:.1f} %"


def summary_table(table: ResultTable) -> dict[str, Any]:
    """Return the table as texts, each marked if it is the best of its column."""
    best = table.best()
    rows = [
        {
            "label": row.label,
            "cells": [(table.write(c), (number, n) in best) for n, c in enumerate(row.cells)],
            "runs": row.run_count,
        }
        for number, row in enumerate(table.rows)
    ]
    return {"titles": [column.title for column in table.columns], "rows": rows}


def group_settings(group: Group) -> dict[str, Any]:
    """Return settings and environment of a group's first run, by dotted name."""
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
