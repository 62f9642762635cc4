"""Methods against one of them, pair by pair: same stream order, same source model, same seed.

The differences of pairs vary less than the figures themselves, since what makes an order easy or
hard for one method does so for the other. Their mean has a confidence interval.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attakit.errors import unknown_name
from attakit.report.labels_bought import labels_bought
from attakit.report.lineup import Entrant, RunReader, final, line_up
from attakit.report.runs import RunRecord, grouped, inapplicable_note
from attakit.report.streams import (
    STREAM_NAMES,
    by_model,
    is_pool,
    order_of,
    repeats_note,
    setting,
    stream_name,
)
from attakit.report.summaries import MeanStd
from attakit.report.tables import ResultTable, TableCell, TableColumn, TableRow

# 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom.
_STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
_NORMAL = 1.95996


def confidence_interval(differences: Sequence[float]) -> MeanStd | None:
    """The mean of differences, and half of its 95 % confidence interval by Student's t.

    A single difference has no interval, and no differences have no mean.

    >>> confidence_interval([4.0, 5.0, 6.0])
    MeanStd(mean=5.0, deviation=2.484...)
    """
    if len(differences) < 2:
        return MeanStd(differences[0]) if differences else None
    freedom = len(differences) - 1
    if freedom <= len(_STUDENT):
        quantile = _STUDENT[freedom - 1]
    else:
        quantile = _NORMAL + (_NORMAL**3 + _NORMAL) / (4 * freedom)
    error = statistics.stdev(differences) / len(differences) ** 0.5
    return MeanStd(statistics.fmean(differences), quantile * error)


@dataclass(frozen=True)
class _Contest:
    """Runs on one data set, with one model, by one kind of order; the orders themselves differ."""

    title: str
    runs: Sequence[RunRecord]  # finished, of methods that apply
    inapplicable: Sequence[RunRecord]
    dropped: int  # runs that are not finished

    @property
    def entrants(self) -> list[Entrant]:
        return line_up(self.runs)


def paired_tables(runs: Sequence[RunRecord], against: str) -> list[ResultTable]:
    """One table per data set, model and kind of order, and an overview of the differences.

    Parameters
    ----------
    runs
        What to compare. Runs over a pool and unfinished ones are left out.
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
    contests = [one for one in _contests(runs) if one.runs]
    tables = [_table(one, against) for one in contests]
    return [*tables, _overview(contests, against)]


def _contests(runs: Sequence[RunRecord]) -> list[_Contest]:
    found: list[_Contest] = []
    for one in by_model([run for run in runs if not is_pool(run)]):
        orders = grouped(one.runs, order_of)
        for order in sorted(orders, key=_rank):
            named = (one.data_set, one.model, f"{stream_name(order)} stream", one.description)
            found.append(_contest(", ".join(filter(None, named)), orders[order]))
    return found


def _rank(order: str) -> int:
    """Domain-wise before random, and others behind, as they come."""
    known = list(STREAM_NAMES)
    return known.index(order) if order in known else len(known)


def _contest(title: str, runs: Sequence[RunRecord]) -> _Contest:
    return _Contest(
        title,
        [run for run in runs if run.is_finished],
        [run for run in runs if run.inapplicable],
        sum(not run.is_finished and not run.inapplicable for run in runs),
    )


def _pair(run: RunRecord) -> tuple[Any, Any, Any]:
    """What two runs of a pair have in common: the samples in their order, the weights, the seed."""
    return run.environment.get("stream"), run.environment.get("model"), run.seed


def _pairs(own: Entrant, other: Entrant, read: RunReader) -> list[tuple[float, float]]:
    """A figure of each run, with that of the other entrant's run that it is paired with."""
    partners = {_pair(run): read(run) for run in other.all_runs}
    found = [(read(run), partners.get(_pair(run))) for run in own.all_runs]
    return [(mine, theirs) for mine, theirs in found if mine is not None and theirs is not None]


_ACCURACY, _SECONDS = final("stream_accuracy"), final("seconds")


def _difference(own: Entrant, against: Entrant | None) -> TableCell:
    if against is None or own is against:
        return TableCell()
    pairs = _pairs(own, against, _ACCURACY)
    figure = confidence_interval([mine - theirs for mine, theirs in pairs])
    return TableCell(figure, signed=True)


def _ratio(own: Entrant, source_only: Entrant | None) -> TableCell:
    if source_only is None:
        return TableCell()
    pairs = _pairs(own, source_only, _SECONDS)
    return TableCell(MeanStd.of(mine / theirs for mine, theirs in pairs if theirs))


def _table(contest: _Contest, against: str) -> ResultTable:
    entrants = contest.entrants
    reference = next((one for one in entrants if one.label == against), None)
    plain = next((one for one in entrants if _method(one) == "source_only"), None)
    columns: dict[str, Callable[[Entrant], TableCell]] = {
        "stream": lambda one: TableCell(_mean(one, "stream_accuracy")),
        f"to {against}": lambda one: _difference(one, reference),
        "source": lambda one: TableCell(_mean(one, "source_accuracy")),
        "labels": lambda one: TableCell(_mean(one, "labels"), decimals=0),
        "seconds": lambda one: TableCell(_mean(one, "seconds")),
        "× source only": lambda one: _ratio(one, plain),
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


def _notes(contest: _Contest, against: str) -> tuple[str, ...]:
    left_out = sum(one.left_out for one in contest.entrants)
    unfinished = f"Left out: {contest.dropped} not finished." if contest.dropped else ""
    notes = (
        f"After a difference to {against}, ± is half of its 95 % confidence interval: Student's t "
        f"over pairs with the same stream order, seed and source model.",
        labels_bought([_without_targets(run) for run in contest.runs]),
        unfinished,
        *repeats_note(left_out),
        inapplicable_note(contest.inapplicable),
    )
    return tuple(note for note in notes if note)


def _without_targets(run: RunRecord) -> RunRecord:
    """The run as one of several that differ in nothing but the order of their domains."""
    stream = {**run.experiment.get("stream", {}), "targets": None}
    return replace(run, experiment={**run.experiment, "stream": stream})


def _overview(contests: Sequence[_Contest], against: str) -> ResultTable:
    """The differences of all contests in one table, a row for each."""
    shown = [one for one in contests if against in {run.label for run in one.runs}]
    found = [{one.full_label: one for one in contest.entrants} for contest in shown]
    labels = list(dict.fromkeys(label for own in found for label in own if label != against))
    rows = tuple(
        TableRow(
            contest.title,
            tuple(
                _difference(own[label], own.get(against)) if label in own else TableCell()
                for label in labels
            ),
        )
        for contest, own in zip(shown, found, strict=True)
    )
    heads = tuple(TableColumn("", "", label) for label in labels)
    title = f"Difference to {against} (points)"
    return ResultTable(title, heads, rows, corner="stream", marks_best=False)


def _mean(entrant: Entrant, name: str) -> MeanStd | None:
    return MeanStd.of(final(name)(run) for run in entrant.all_runs)


def _method(entrant: Entrant) -> str | None:
    name: str | None = setting(entrant.all_runs[0], "method", "name")
    return name
