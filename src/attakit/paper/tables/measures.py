"""Rows and columns of the paper's layouts: where our figure and the paper's number come from."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from attakit.paper.tables.numbers import PaperTable
from attakit.report.lineup import Entrant, RunReader, final, final_of, with_remark
from attakit.report.runs import RunRecord
from attakit.report.streams import setting, stream_name
from attakit.report.summaries import MeanStd, final_figures
from attakit.report.tables import MEMORY, PaperNumber, TableCell, TableColumn

Printed = Callable[[PaperTable, str], PaperNumber | None]  # table, row


def _nothing(_table: PaperTable, _row: str) -> None:
    return None


@dataclass(frozen=True)
class Measure:
    """One column of a layout.

    Parameters
    ----------
    column
        Its titles.
    read
        Takes our figure from a run.
    order
        The stream order whose runs count; None takes all.
    printed
        Takes the paper's number from its table and row.
    decimals
        How many to show.

    Examples
    --------
    >>> column = TableColumn("", "", "labels", is_accuracy=False)
    >>> measure = Measure(column, final("labels"), decimals=0)
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"labels": 12})
    >>> measure.cell(Entrant("tent", 300, {"random": (run,)}), None).figure.mean
    12.0
    """

    column: TableColumn
    read: RunReader
    order: str | None = None
    printed: Printed = _nothing
    decimals: int = 1

    def cell(self, entrant: Entrant, table: PaperTable | None) -> TableCell:
        """The cell of a method in this column."""
        row = table.row_name(entrant.label, entrant.budget) if table is not None else None
        paper = self.printed(table, row) if table is not None and row is not None else None
        return TableCell(self._figure(entrant), paper, self.decimals)

    def _figure(self, entrant: Entrant) -> MeanStd | None:
        if self.order is not None:
            return entrant.figure(self.order, self.read)
        return MeanStd.of(self.read(run) for run in entrant.all_runs)


def mean_of(name: str, keys: Sequence[str]) -> RunReader:
    """Reads the plain mean over domains or segments; None unless all are there."""

    def read(run: RunRecord) -> float | None:
        return _mean(final_of(name, key)(run) for key in keys)

    return read


def printed_at(*columns: str) -> Printed:
    """The paper's number in a column, or its mean over several columns."""

    def printed(table: PaperTable, row: str) -> PaperNumber | None:
        numbers = [table.number(row, column) for column in columns]
        if len(numbers) == 1:
            return numbers[0]
        mean = _mean(None if number is None else number.value for number in numbers)
        return None if mean is None else PaperNumber(mean)

    return printed


def printed_labels(order: str) -> Printed:
    """The labels that the paper says a row used on a stream."""

    def printed(table: PaperTable, row: str) -> PaperNumber | None:
        counts = table.labels.get(row, ())
        place = {"domain-wise": 0, "random": 1}.get(stream_name(order), len(counts))
        return PaperNumber(counts[place]) if place < len(counts) else None

    return printed


def _mean(values: Iterable[float | None]) -> float | None:
    known = list(values)
    numbers = [value for value in known if value is not None]
    return statistics.fmean(numbers) if numbers and len(numbers) == len(known) else None


def letter_of(table: PaperTable | None, domain: str) -> str:
    """The paper's letter for a domain, or its own name where the paper has none."""
    return (table.letter(domain) if table is not None else None) or domain


def segments_of(entrants: Sequence[Entrant], order: str) -> list[str]:
    """The segments of the streams of one order."""
    runs = [run for entrant in entrants for run in entrant.runs.get(order, ())]
    return list(dict.fromkeys(name for run in runs for name in run.segments))


def targets_of(entrants: Sequence[Entrant]) -> list[str]:
    """The domains that were scored after the stream."""
    ends = [final_figures(run) for entrant in entrants for run in entrant.all_runs]
    return list(dict.fromkeys(name for end in ends for name in end.get("post_adaptation") or {}))


def is_known(entrants: Sequence[Entrant], read: RunReader) -> bool:
    """Whether any run has a figure."""
    return any(read(run) is not None for entrant in entrants for run in entrant.all_runs)


def source_measures(
    entrants: Sequence[Entrant], table: PaperTable | None, part: str, order: str | None
) -> list[Measure]:
    """Accuracy on the source: on all of it, as in the paper, and on what was never trained on."""
    named = [setting(run, "stream", "source") for e in entrants for run in e.all_runs]
    own = next((name for name in named if name), None)
    letter = (table.source if table is not None else None) or own or "source"
    printed = printed_at(f"{part}/after/{letter}" if part else letter)
    whole, held_out = final("source_accuracy_whole"), final("source_accuracy")
    columns = []
    if is_known(entrants, whole):
        columns.append(Measure(TableColumn(part, "after", letter), whole, order, printed))
        printed = _nothing
    if is_known(entrants, held_out):
        head = TableColumn(part, "after", f"{letter} held out")
        columns.append(Measure(head, held_out, order, printed))
    return columns


def target_measures(
    entrants: Sequence[Entrant], table: PaperTable | None, part: str, order: str | None
) -> list[Measure]:
    """Accuracy on each whole target domain, and their mean without the labelled samples."""
    names = targets_of(entrants)
    columns = []
    for name in names:
        letter = letter_of(table, name)
        printed = printed_at(f"{part}/after/{letter}" if part else letter)
        head = TableColumn(part, "after", letter)
        columns.append(Measure(head, final_of("post_adaptation", name), order, printed))
    unlabelled = mean_of("post_adaptation_unlabelled", names)
    if is_known(entrants, unlabelled):
        columns.append(Measure(TableColumn(part, "after", "no label"), unlabelled, order))
    return columns


def cost_measures(
    entrants: Sequence[Entrant], part: str, order: str | None, printed: Printed = _nothing
) -> list[Measure]:
    """Labels used, seconds taken and, where it was measured, peak memory."""
    seconds = TableColumn(part, "", "seconds", is_accuracy=False)
    return [
        labels_measure(part, order, printed),
        Measure(seconds, final("seconds"), order, decimals=0),
        *memory_measures(entrants, part, order),
    ]


def labels_measure(part: str, order: str | None, printed: Printed = _nothing) -> Measure:
    """Labels used."""
    head = TableColumn(part, "", "labels", is_accuracy=False)
    return Measure(head, final("labels"), order, printed, decimals=0)


def memory_measures(entrants: Sequence[Entrant], part: str, order: str | None) -> list[Measure]:
    """Peak memory of the process in megabytes, where any run knows it."""
    memory = final("peak_memory_mb")
    head = TableColumn(part, "", MEMORY, is_accuracy=False)
    known = is_known(entrants, memory)
    return [Measure(head, memory, order, decimals=0)] if known else []


def row_title(entrant: Entrant, table: PaperTable | None, *, with_budget: bool) -> str:
    """The paper's name for an entrant, or its own name, with its budget if asked for."""
    known = table.row_name(entrant.label, entrant.budget) if table is not None else None
    own = with_remark(entrant.label, f"B ≤ {entrant.budget}" * with_budget)
    return with_remark(known or own, entrant.variant)


def in_paper_order(entrants: Sequence[Entrant], table: PaperTable | None) -> list[Entrant]:
    """Entrants in the order of the paper's rows; those that the paper does not have come last."""
    if table is None:
        return list(entrants)
    ranks = {name: rank for rank, name in enumerate(table.rows)}
    return sorted(
        entrants,
        key=lambda each: ranks.get(table.row_name(each.label, each.budget) or "", len(ranks)),
    )
