"""Compare methods with one of them, pair by pair: same stream order, source model and seed.

Paired differences vary less than the numbers themselves, because an order that is hard for one
method is also hard for the other. Their mean has a confidence interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from attakit.errors import unknown_name
from attakit.report.contests import (
    Contest,
    confidence_interval,
    contests,
    mean_figure,
    pairs,
    times_source_only,
)
from attakit.report.label_gain import label_gain
from attakit.report.lineup import Entrant, final
from attakit.report.runs import RunRecord, inapplicable_note
from attakit.report.streams import repeats_note
from attakit.report.tables import ResultTable, TableCell, TableColumn, TableRow


def paired_tables(runs: Sequence[RunRecord], against: str) -> list[ResultTable]:
    """Make one table per data set, model and kind of order, and an overview of the differences.

    Parameters
    ----------
    runs
        The runs to compare. Pool runs and unfinished ones are excluded.
    against
        Label of the method that the others are compared with.

    Examples
    --------
    >>> def run(label, accuracy):
    ...     end = {"stream_accuracy": accuracy, "labels": 9, "seconds": 2.0}
    ...     return RunRecord({"label": label}, {"stream": "1", "model": "2"}, [], [], [], end)
    >>> table, _ = paired_tables([run("simatta", 60.0), run("new", 65.0)], "simatta")
    >>> table.write(table.rows[1].cells[1])
    '+5.0'
    """
    labels = list(dict.fromkeys(run.label for run in runs))
    if against not in labels:
        raise unknown_name("method to compare with", against, labels)
    found = contests(runs)
    return [*(_table(one, against) for one in found), _overview(found, against)]


_ACCURACY = final("stream_accuracy")


def _difference(own: Entrant, against: Entrant | None) -> TableCell:
    if against is None or own is against:
        return TableCell()
    both = pairs(own, against, _ACCURACY)
    figure = confidence_interval([mine - theirs for mine, theirs in both])
    return TableCell(figure, signed=True)


def _table(contest: Contest, against: str) -> ResultTable:
    entrants = contest.entrants
    reference = next((one for one in entrants if one.label == against), None)
    columns: dict[str, Callable[[Entrant], TableCell]] = {
        "stream": lambda one: TableCell(mean_figure(one, "stream_accuracy")),
        f"to {against}": lambda one: _difference(one, reference),
        "source": lambda one: TableCell(mean_figure(one, "source_accuracy")),
        "labels": lambda one: TableCell(mean_figure(one, "labels"), decimals=0),
        "seconds": lambda one: TableCell(mean_figure(one, "seconds")),
        "× source only": lambda one: times_source_only(one, entrants),
    }
    rows = [
        TableRow(one.full_label, tuple(cell(one) for cell in columns.values()), len(one.all_runs))
        for one in entrants
    ]
    accuracies = ("stream", "source")
    heads = tuple(TableColumn("", "", title, title in accuracies) for title in columns)
    table = ResultTable(
        contest.title, heads, tuple(rows), _notes(contest, against), counts_runs=True
    )
    return table.with_inapplicable(run.label for run in contest.inapplicable)


def _notes(contest: Contest, against: str) -> tuple[str, ...]:
    left_out = sum(one.left_out for one in contest.entrants)
    unfinished = f"Left out: {contest.dropped} not finished." if contest.dropped else ""
    notes = (
        f"After a difference to {against}, ± is half of its 95 % confidence interval: Student's t "
        "over pairs with the same stream order, seed and source model.",
        label_gain([_without_targets(run) for run in contest.runs]),
        unfinished,
        *repeats_note(left_out),
        inapplicable_note(contest.inapplicable),
    )
    return tuple(note for note in notes if note)


def _without_targets(run: RunRecord) -> RunRecord:
    """Return the run without the order of its domains."""
    stream = {**run.experiment.get("stream", {}), "targets": None}
    return replace(run, experiment={**run.experiment, "stream": stream})


def _overview(found: Sequence[Contest], against: str) -> ResultTable:
    """Make one table of the differences of all contests, a row for each."""
    shown = [one for one in found if against in {run.label for run in one.runs}]
    entrants = [{one.full_label: one for one in contest.entrants} for contest in shown]
    labels = list(dict.fromkeys(label for own in entrants for label in own if label != against))
    rows = tuple(
        TableRow(
            contest.title,
            tuple(
                _difference(own[label], own.get(against)) if label in own else TableCell()
                for label in labels
            ),
        )
        for contest, own in zip(shown, entrants, strict=True)
    )
    heads = tuple(TableColumn("", "", label) for label in labels)
    title = f"Difference to {against} (points)"
    return ResultTable(title, heads, rows, corner="stream", marks_best=False)
