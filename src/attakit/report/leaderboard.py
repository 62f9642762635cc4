"""Methods ranked over many streams: the layout "leaderboard".

Every contest (data set, model, kind of stream order) ranks the methods by their mean accuracy. The
average rank shows who is ahead in general. A mean of accuracies over easy and hard streams does
not. Two average ranks differ clearly if they are further apart than the critical difference of
Nemenyi's test (Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR
2006).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attakit.errors import SettingError
from attakit.report.contests import (
    Contest,
    confidence_interval,
    contests,
    mean_figure,
    times_source_only,
)
from attakit.report.lineup import Entrant, final, several_budgets, with_remark
from attakit.report.runs import RunRecord, inapplicable_note
from attakit.report.summaries import MeanStd
from attakit.report.tables import ResultTable, TableCell, TableColumn, TableRow

_ACCURACY = final("stream_accuracy")
_LEVEL = 0.95


@dataclass(frozen=True)
class Ranking:
    """Average ranks of the methods that took part in every contest.

    Parameters
    ----------
    ranks
        Average rank by method, best first; 1 is the best possible rank.
    contests
        Number of contests.
    missing
        Methods without a rank, because some contest lacks their result.

    Examples
    --------
    >>> ranking = rank_methods([{"a": 8.0, "b": 7.0}, {"a": 6.0, "b": 7.0}, {"a": 9.0, "b": 8.0}])
    >>> {label: round(rank, 2) for label, rank in ranking.ranks.items()}
    {'a': 1.33, 'b': 1.67}
    >>> round(ranking.critical_difference, 2)
    1.13
    """

    ranks: Mapping[str, float]
    contests: int
    missing: tuple[str, ...] = ()

    @property
    def critical_difference(self) -> float:
        """The distance at which two average ranks differ with 95 % confidence."""
        from scipy.stats import studentized_range  # noqa: PLC0415, a second of every start

        methods = len(self.ranks)
        quantile = float(studentized_range.ppf(_LEVEL, methods, math.inf)) / math.sqrt(2)
        return quantile * math.sqrt(methods * (methods + 1) / (6 * self.contests))


def rank_methods(accuracies: Sequence[Mapping[str, float]]) -> Ranking:
    """Rank methods by their accuracies in several contests; ties share their ranks."""
    from scipy.stats import rankdata  # noqa: PLC0415, a second of every start

    labels = list(dict.fromkeys(label for one in accuracies for label in one))
    present = [label for label in labels if all(label in one for one in accuracies)]
    if len(present) < 2:
        raise SettingError(
            f"The leaderboard ranks methods that were run on all {len(accuracies)} streams, and "
            f"needs at least two of them, got {len(present)}. Run the missing cells with `attakit "
            "bench`, or give fewer folders."
        )
    rows = [rankdata([-one[label] for label in present]) for one in accuracies]
    averages = {
        label: sum(float(row[n]) for row in rows) / len(rows) for n, label in enumerate(present)
    }
    ordered = dict(sorted(averages.items(), key=lambda pair: pair[1]))
    return Ranking(ordered, len(rows), tuple(label for label in labels if label not in present))


def ranking_of(runs: Sequence[RunRecord]) -> Ranking:
    """Rank the methods of finished runs over all their streams."""
    return rank_methods([mean_accuracies(contest) for contest in contests(runs)])


def leaderboard_tables(runs: Sequence[RunRecord]) -> list[ResultTable]:
    """The ranking, and one table for each data set, model and kind of stream order."""
    found = contests(runs)
    ranking = ranking_of(runs)
    return [_overall(found, ranking), *(_table(contest, ranking) for contest in found)]


def _named(contest: Contest) -> dict[str, Entrant]:
    """Return the entrants by name, with the budget if a method was run with several."""
    entrants = contest.entrants
    return {
        with_remark(one.full_label, f"B ≤ {one.budget}")
        if several_budgets(entrants, one.label)
        else one.full_label: one
        for one in entrants
    }


def mean_accuracies(contest: Contest) -> dict[str, float]:
    """Return each method's mean accuracy on the stream over the runs of a contest."""
    figures = {name: mean_figure(one, "stream_accuracy") for name, one in _named(contest).items()}
    return {label: figure.mean for label, figure in figures.items() if figure is not None}


def _overall(found: Sequence[Contest], ranking: Ranking) -> ResultTable:
    entrants = [_named(contest) for contest in found]

    def mean(label: str, read: Callable[[Entrant, Sequence[Entrant]], MeanStd | None]) -> MeanStd:
        known = (read(own[label], list(own.values())) for own in entrants)
        return MeanStd(sum(one.mean for one in known if one is not None) / len(entrants))

    rows = tuple(
        TableRow(
            label,
            (
                TableCell(MeanStd(rank), decimals=2),
                TableCell(mean(label, lambda one, _: mean_figure(one, "stream_accuracy"))),
                TableCell(mean(label, lambda one, _: mean_figure(one, "source_accuracy"))),
                TableCell(mean(label, lambda one, _: mean_figure(one, "labels")), decimals=0),
                TableCell(mean(label, lambda one, others: times_source_only(one, others).figure)),
                TableCell(
                    mean(label, lambda one, _: mean_figure(one, "peak_memory_mb")), decimals=0
                ),
            ),
        )
        for label, rank in ranking.ranks.items()
    )
    titles = ("average rank", "stream", "source", "labels", "× source only", "MB")
    heads = tuple(TableColumn("", "", title, title in ("stream", "source")) for title in titles)
    return ResultTable("All streams", heads, rows, _overall_notes(ranking))


def _overall_notes(ranking: Ranking) -> tuple[str, ...]:
    notes = [
        f"Average over {ranking.contests} streams, each with the same weight. Two average ranks "
        f"differ clearly if they are at least {ranking.critical_difference:.2f} apart (Nemenyi's "
        f"test, 95 %)."
    ]
    if ranking.missing:
        notes.append(f"No rank, because some streams lack them: {', '.join(ranking.missing)}.")
    return tuple(notes)


def _table(contest: Contest, ranking: Ranking) -> ResultTable:
    named = _named(contest)
    entrants = list(named.values())
    columns: dict[str, Callable[[Entrant], TableCell]] = {
        "stream": lambda one: TableCell(_interval(one)),
        "source": lambda one: TableCell(mean_figure(one, "source_accuracy")),
        "labels": lambda one: TableCell(mean_figure(one, "labels"), decimals=0),
        "× source only": lambda one: times_source_only(one, entrants),
        "MB": lambda one: TableCell(mean_figure(one, "peak_memory_mb"), decimals=0),
    }
    order = [*ranking.ranks, *ranking.missing]
    rows = tuple(
        TableRow(name, tuple(cell(one) for cell in columns.values()), len(one.all_runs))
        for name, one in sorted(named.items(), key=lambda pair: order.index(pair[0]))
    )
    heads = tuple(TableColumn("", "", title, title in ("stream", "source")) for title in columns)
    notes = (
        "After the accuracy on the stream, ± is half of its 95 % confidence interval over runs "
        "(Student's t); elsewhere it is the standard deviation.",
        inapplicable_note(contest.inapplicable),
    )
    table = ResultTable(
        contest.title, heads, rows, tuple(note for note in notes if note), counts_runs=True
    )
    return table.with_inapplicable(run.label for run in contest.inapplicable)


def _interval(entrant: Entrant) -> MeanStd | None:
    figures = (_ACCURACY(run) for run in entrant.all_runs)
    return confidence_interval([figure for figure in figures if figure is not None])
