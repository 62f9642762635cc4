"""The paper's complete results: accuracy on every domain after each segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attakit.paper.tables.measures import letter_of, row_title, segments_of, targets_of
from attakit.paper.tables.notes import READ_COMPLETE, legend, paper_note
from attakit.paper.tables.numbers import PaperTable, find_table
from attakit.report.fairness import fairness_notes
from attakit.report.lineup import Entrant, final, orders_of, several_budgets
from attakit.report.runs import RunRecord
from attakit.report.streams import stream_name
from attakit.report.summaries import MeanStd, final_figures
from attakit.report.tables import PaperNumber, ResultTable, TableCell, TableColumn, TableRow

BEFORE = "before"


def complete(data_set: str, entrants: Sequence[Entrant]) -> list[ResultTable]:
    """Complete results: a table per method and budget, with labels used so far."""
    return [_result_table(data_set, entrant, entrants) for entrant in entrants]


def _result_table(data_set: str, entrant: Entrant, entrants: Sequence[Entrant]) -> ResultTable:
    table = _table(data_set, entrant)
    with_budget = several_budgets(entrants, entrant.label)
    name = row_title(entrant, None, with_budget=with_budget)
    if table is not None and table.method:
        name = f"{table.method} ({entrant.variant})" if entrant.variant else table.method
    moments = [
        (order, segment)
        for order in orders_of([entrant])
        for segment in (BEFORE, *segments_of([entrant], order))
    ]
    letters = [
        segment if segment == BEFORE else letter_of(table, segment) for _, segment in moments
    ]
    columns = tuple(
        TableColumn(stream_name(order), "", letter)
        for (order, _), letter in zip(moments, letters, strict=True)
    )
    rows = tuple(
        TableRow(title, tuple(_cell(entrant, table, row, *moment) for moment in moments))
        for row, title in _rows(entrant, table).items()
    )
    has_paper = any(row.has_paper for row in rows)
    notes = [READ_COMPLETE, *legend(table), *paper_note(table if has_paper else None)]
    title = f"{name} on {data_set if table is None else table.title.rpartition(' on ')[2]}"
    return ResultTable(
        title, columns, rows, (*notes, *fairness_notes([entrant])), corner="", marks_best=False
    )


def _table(data_set: str, entrant: Entrant) -> PaperTable | None:
    """Return the paper's table for a method, whose budget may be part of its name."""
    names = (entrant.label, f"{entrant.label} (B ≤ {entrant.budget})")
    found = (find_table("complete", data_set, name) for name in names)
    return next((table for table in found if table is not None), None)


def _rows(entrant: Entrant, table: PaperTable | None) -> dict[str, str]:
    """Return what each row reads, and its title."""
    letter = table.source if table is not None and table.source else "source"
    rows = {"current": "current", "labels": "labels"}
    moments = [_known(run, segment) for run in entrant.all_runs for segment in run.segments]
    if any("source_accuracy_whole" in result for result in moments):
        rows["source_accuracy_whole"] = letter
    rows["source_accuracy"] = f"{letter} held out"
    measured = [name for result in moments for name in result.get("domains") or {}]
    names = dict.fromkeys([*targets_of([entrant]), *measured])
    return rows | {name: letter_of(table, name) for name in names}


def _cell(
    entrant: Entrant, table: PaperTable | None, row: str, order: str, segment: str
) -> TableCell:
    figure = MeanStd.of(_read(run, row, segment) for run in entrant.runs.get(order, ()))
    return TableCell(figure, _printed(table, row, order, segment), 0 if row == "labels" else 1)


def _printed(table: PaperTable | None, row: str, order: str, segment: str) -> PaperNumber | None:
    if table is None or row == "source_accuracy":
        return None
    part = stream_name(order)
    if segment == BEFORE:  # the paper prints it once, in the column of the source
        column = f"domain-wise/{table.source}"
    else:
        column = f"{part}/{letter_of(table, segment)}"
    name = table.source if row == "source_accuracy_whole" else letter_of(table, row)
    return table.number(str(name), column)


def _read(run: RunRecord, row: str, segment: str) -> float | None:
    """Return a number of a run at the end of a segment, or before the first step."""
    if row == "current":
        return None if segment == BEFORE else final("segments", segment)(run)
    result = run.before if segment == BEFORE else _known(run, segment)
    figures = {
        **(result.get("domains") or {}),
        "labels": result.get("received"),
        "source_accuracy": result.get("source_accuracy"),
        "source_accuracy_whole": result.get("source_accuracy_whole"),
    }
    found: float | None = figures.get(row)
    return found


def _known(run: RunRecord, segment: str) -> Mapping[str, Any]:
    """Return the numbers at the end of a segment; at the end of the stream also the final ones."""
    members = [n for n, step in enumerate(run.steps) if segment in (step.get("segments") or {})]
    if not members:
        return {}
    step = run.steps[members[-1]]
    if members[-1] < len(run.steps) - 1 or not run.is_finished:
        return step
    end = final_figures(run)
    last = {"received": end.get("labels"), "domains": end.get("post_adaptation")}
    source = {name: end.get(name) for name in ("source_accuracy", "source_accuracy_whole")}
    return {
        **step,
        **{name: value for name, value in {**last, **source}.items() if value is not None},
    }
