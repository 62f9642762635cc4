"""What became of a suite, ready for JSON and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attakit.bench.suites.cells import Cell
from attakit.bench.suites.grid import End
from attakit.bench.suites.work import CellResult
from attakit.report.fairness import check_fairness
from attakit.report.labels_bought import labels_bought
from attakit.report.runs import RunRecord, read_run
from attakit.settings.suite import Suite

_FIGURES = (
    "stream_accuracy",
    "source_accuracy",
    "labels",
    "seconds",
    "setup_seconds",
    "peak_memory_mb",
)


def summarise_grid(
    suite: Suite, cells: Sequence[Cell], outcomes: Mapping[str, tuple[End, CellResult]]
) -> dict[str, Any]:
    """One object about a suite that was run: every cell, and whether they are comparable."""
    done = [cell for cell in cells if outcomes[cell.name][0] in ("finished", "skipped")]
    runs = {cell.name: read_run(cell.folder) for cell in done}
    fairness = check_fairness(
        [(cell.stream, runs[cell.name]) for cell in done],
        own_batch_sizes=suite.protocol == "paper",
    )
    ends = [end for end, _ in outcomes.values()]
    return {
        "suite": suite.name,
        "folder": str(suite.results),
        "layout": suite.layout,
        "protocol": suite.protocol,
        **{end: ends.count(end) for end in ("finished", "skipped", "inapplicable", "failed")},
        "fairness": {"shared": list(fairness.shared), "warnings": list(fairness.warnings)},
        "labels_bought": {
            stream: labels_bought([runs[cell.name] for cell in done if cell.stream == stream])
            for stream in dict.fromkeys(cell.stream for cell in done)
        },
        "cells": [_line(cell, outcomes[cell.name], runs.get(cell.name)) for cell in cells],
    }


def _line(cell: Cell, outcome: tuple[End, CellResult], run: RunRecord | None) -> dict[str, Any]:
    line: dict[str, Any] = {**cell.description, "state": outcome[0]}
    if outcome[1].message:
        line["message"] = outcome[1].message
    if run is None or run.end is None:
        return line
    return {
        **line,
        "model": run.environment.get("model"),
        "stream_order": run.environment.get("stream"),
        "batch_size": run.experiment["stream"]["batch_size"],
        "threads": run.environment.get("threads"),
        **{name: run.end.get(name) for name in _FIGURES},
    }
