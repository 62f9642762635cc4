"""Rows and columns of the paper's layouts: sources of our numbers and the paper's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attakit.paper.tables.numbers import PaperTable
from attakit.report.lineup import Entrant, RunReader, final, with_remark
from attakit.report.runs import RunRecord
from attakit.report.streams import setting, stream_name
from attakit.report.summaries import MeanStd, final_figures, mean_of_all
from attakit.report.tables import MEMORY_TITLE, PaperNumber, TableCell, TableColumn

Printed = Callable[[PaperTable, str], PaperNumber | None]  # table, row


def _nothing(_table: PaperTable, _row: str) -> None:
    return None


@dataclass(frozen=True)
class Measure:
    """One column of a layout.

    Examples
    --------
    >>> column = TableColumn("", "", "labels", is_accuracy=False)
    >>> measure = Measure(column, final("labels"), decimals=0)
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"labels": 12})
    >>> measure.cell(Entrant("tent", 300, {"random": (run,)}), None).figure.mean
    12.0
    """

    column: TableColumn
    read: RunReader  # our number
    order: str | None = None  # order of the streams that count; None means all
    printed: Printed = _nothing  # the paper's number
    decimals: int = 1

    def cell(self, entrant: Entrant, table: PaperTable | None) -> TableCell:
        """Return the cell of a method in this column."""
        row = paper_row(entrant, table)
        paper = self.printed(table, row) if table is not None and row is not None else None
        runs = entrant.all_runs if self.order is None else entrant.runs.get(self.order, ())
        return TableCell(MeanStd.of(self.read(run) for run in runs), paper, self.decimals)


def mean_of(name: str, keys: Sequence[str]) -> RunReader:
    """Return a reader for the plain mean over domains or segments; None unless all are known."""

    def read(run: RunRecord) -> float | None:
        return mean_of_all(final(name, key)(run) for key in keys)

    return read


def printed_at(*columns: str) -> Printed:
    """Return the paper's number in a column, or its mean over several columns."""

    def printed(table: PaperTable, row: str) -> PaperNumber | None:
        numbers = [table.number(row, column) for column in columns]
        if len(numbers) == 1:
            return numbers[0]
        mean = mean_of_all(None if number is None else number.value for number in numbers)
        return None if mean is None else PaperNumber(mean)

    return printed


def printed_labels(order: str) -> Printed:
    """Return the labels that a row used on a stream, according to the paper."""

    def printed(table: PaperTable, row: str) -> PaperNumber | None:
        counts = table.labels.get(row, ())
        place = {"domain-wise": 0, "random": 1}.get(stream_name(order), len(counts))
        return PaperNumber(counts[place]) if place < len(counts) else None

    return printed


def letter_of(table: PaperTable | None, domain: str) -> str:
    """Return the paper's letter for a domain, or the domain's name if there is none."""
    return (table.letter(domain) if table is not None else None) or domain


def segments_of(entrants: Sequence[Entrant], order: str) -> list[str]:
    """Return the segments of the streams of one order."""
    runs = [run for entrant in entrants for run in entrant.runs.get(order, ())]
    return list(dict.fromkeys(name for run in runs for name in run.segments))


def targets_of(entrants: Sequence[Entrant]) -> list[str]:
    """Return the domains that were scored after the stream."""
    ends = [final_figures(run) for entrant in entrants for run in entrant.all_runs]
    return list(dict.fromkeys(name for end in ends for name in end.get("post_adaptation") or {}))


def is_known(entrants: Sequence[Entrant], read: RunReader) -> bool:
    """True if any run has this number."""
    return any(read(run) is not None for entrant in entrants for run in entrant.all_runs)


def new_measure(
    order: str | None,
    group: str,
    title: str,
    read: RunReader,
    printed: Printed = _nothing,
    decimals: int = 1,
) -> Measure:
    """Make a column of accuracies during or after the stream; without a group, of costs."""
    part = "" if order is None else stream_name(order)
    column = TableColumn(part, group, title, is_accuracy=bool(group))
    return Measure(column, read, order, printed, decimals)


def source_measures(
    entrants: Sequence[Entrant], table: PaperTable | None, order: str | None
) -> list[Measure]:
    """Make columns of the source accuracy: on all of it, as in the paper, and held-out."""
    named = [setting(run, "stream", "source") for e in entrants for run in e.all_runs]
    own = next((name for name in named if name), None)
    letter = (table.source if table is not None else None) or own or "source"
    printed = _printed_after(order, letter)
    whole, held_out = final("source_accuracy_whole"), final("source_accuracy")
    columns = []
    if is_known(entrants, whole):
        columns.append(new_measure(order, "after", letter, whole, printed))
        printed = _nothing
    if is_known(entrants, held_out):
        columns.append(new_measure(order, "after", f"{letter} held out", held_out, printed))
    return columns


def target_measures(
    entrants: Sequence[Entrant], table: PaperTable | None, order: str | None
) -> list[Measure]:
    """Make columns of the accuracy on each target domain, and their mean without labels."""
    names = targets_of(entrants)
    columns = []
    for name in names:
        letter, read = letter_of(table, name), final("post_adaptation", name)
        printed = _printed_after(order, letter)
        columns.append(new_measure(order, "after", letter, read, printed))
    unlabelled = mean_of("post_adaptation_unlabelled", names)
    if is_known(entrants, unlabelled):
        columns.append(new_measure(order, "after", "no label", unlabelled))
    return columns


def _printed_after(order: str | None, letter: str) -> Printed:
    return printed_at(letter if order is None else f"{stream_name(order)}/after/{letter}")


def cost_measures(
    entrants: Sequence[Entrant], order: str | None, printed: Printed = _nothing
) -> list[Measure]:
    """Make columns of labels, seconds and, if measured, peak memory."""
    return [
        new_measure(order, "", "labels", final("labels"), printed, decimals=0),
        new_measure(order, "", "seconds", final("seconds"), decimals=0),
        *memory_measures(entrants, order),
    ]


def memory_measures(entrants: Sequence[Entrant], order: str | None) -> list[Measure]:
    """Make a column of the process's peak memory in megabytes, if any run knows it."""
    memory = final("peak_memory_mb")
    known = is_known(entrants, memory)
    return [new_measure(order, "", MEMORY_TITLE, memory, decimals=0)] if known else []


def paper_row(entrant: Entrant, table: PaperTable | None) -> str | None:
    """Return the paper's row for an entrant, by name.

    If a table says which rows had labels, a run with labels does not match a row without, and vice
    versa: Tent and enhanced Tent are both called Tent.
    """
    row = table.row_name(entrant.label, entrant.budget) if table is not None else None
    if table is None or row is None or not table.labels:
        return row
    has_labels = entrant.budget is not None
    return row if has_labels == (row in table.labels) else None


def row_title(entrant: Entrant, table: PaperTable | None, *, with_budget: bool) -> str:
    """Return the paper's name for an entrant, or its own, with its budget if requested."""
    known = paper_row(entrant, table)
    own = with_remark(entrant.label, f"B ≤ {entrant.budget}" * with_budget)
    return with_remark(known or own, entrant.variant)


def in_paper_order(entrants: Sequence[Entrant], table: PaperTable | None) -> list[Entrant]:
    """Entrants in the order of the paper's rows; those that the paper does not have come last."""
    if table is None:
        return list(entrants)
    ranks = {name: rank for rank, name in enumerate(table.rows)}
    return sorted(
        entrants,
        key=lambda each: ranks.get(paper_row(each, table) or "", len(ranks)),
    )
