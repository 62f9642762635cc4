"""Compare runs: one table per stream, because different streams are not comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from attakit.report.fairness import different_models
from attakit.report.label_gain import label_gain
from attakit.report.lines import as_json
from attakit.report.runs import RunRecord, grouped, inapplicable_note
from attakit.report.streams import (
    conditions_of,
    describe_conditions,
    is_pool,
    order_of,
    repeats_note,
    stream_name,
    without_repeats,
)
from attakit.report.summaries import MethodSummary, summarise
from attakit.report.tables import ResultTable, method_table

POOL = "pool"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The methods that ran on one stream."""

    title: str | None  # how the stream differs from the others; None if there is no other
    runs: list[RunRecord]
    notes: list[str]  # what a reader must know to trust the numbers
    inapplicable: list[str] = field(default_factory=list)  # labels of methods that do not apply

    @property
    def summaries(self) -> list[MethodSummary]:
        """One summary per method, averaged over seeds."""
        return summarise(self.runs)

    @property
    def table(self) -> ResultTable:
        """The summaries as a plain table: best method first, methods that do not apply last."""
        table = method_table(sorted(self.summaries, key=_rank), self.title, self.notes)
        return table.with_inapplicable(self.inapplicable)


def compare(runs: Sequence[RunRecord]) -> list[Comparison]:
    """Make one comparison per stream, in order of appearance; pools are separate.

    A run that repeats another with the same settings, seed and source model adds nothing and is
    excluded.

    >>> def run(order):
    ...     settings = {"method": {"name": "tent"}, "stream": {"order": order}}
    ...     return RunRecord(settings, {}, [], [], [], None)
    >>> [(one.title, len(one.summaries)) for one in compare([run("random"), run("gradual")])]
    [('random stream', 1), ('gradual stream', 1)]
    """
    parts = grouped(runs, lambda run: as_json([_name(run), conditions_of(run)])).values()
    conditions = [conditions_of(own[0]) for own in parts]
    names = [_name(own[0]) for own in parts]
    titles = describe_conditions(conditions)
    if len(set(names)) > 1:
        titles = [[name, *rest] for name, rest in zip(names, titles, strict=True)]
    return [
        comparison(", ".join(title) or None, own) for title, own in zip(titles, parts, strict=True)
    ]


def _rank(summary: MethodSummary) -> float:
    """Sort by accuracy on the stream, highest first; methods without one come last."""
    return float("inf") if summary.stream is None else -summary.stream.mean


def _name(run: RunRecord) -> str:
    """Describe what a run used: a pool, whose order means nothing, or a stream of some order."""
    return POOL if is_pool(run) else f"{stream_name(order_of(run))} stream"


def comparison(title: str | None, runs: Sequence[RunRecord]) -> Comparison:
    """Compare runs on the same stream."""
    applicable = [run for run in runs if not run.inapplicable]
    counted = without_repeats(applicable)
    notes = [
        label_gain(counted),
        different_models(counted),
        *repeats_note(len(applicable) - len(counted)),
        inapplicable_note(runs),
    ]
    inapplicable = [run.label for run in runs if run.inapplicable]
    return Comparison(title, counted, [note for note in notes if note], inapplicable)
