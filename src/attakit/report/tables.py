"""The data of a table of results, independent of its format.

Plain tables of methods and the paper's layouts are both a `ResultTable`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from attakit.report.summaries import MeanStd, MethodSummary

MISSING = "–"
DOES_NOT_APPLY = "does not apply"
MEMORY_TITLE = "MB"
PAPER_ROW = "paper"
_PAPER_DECIMALS = 2


@dataclass(frozen=True, slots=True)
class PaperNumber:
    """A number as printed in the paper, with its standard deviation if there is one."""

    value: float
    deviation: float | None = None


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column: its stream, what is measured, and on what. The first two may be empty.

    Examples
    --------
    >>> TableColumn("domain-wise", "after", "A").full_title
    'domain-wise after A'
    """

    stream: str
    group: str
    title: str
    is_accuracy: bool = True

    @property
    def full_title(self) -> str:
        return " ".join(word for word in (self.stream, self.group, self.title) if word)


@dataclass(frozen=True, slots=True)
class TableCell:
    """Our number, and the paper's number for the same thing."""

    figure: MeanStd | None = None
    paper: PaperNumber | None = None
    decimals: int = 1
    signed: bool = False  # a difference, written with its sign


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of cells, its name, and its number of runs."""

    label: str
    cells: tuple[TableCell, ...]
    runs: int = 0
    unfinished: int = 0

    @property
    def has_paper(self) -> bool:
        """True if the paper has a number for any of the cells."""
        return any(cell.paper is not None for cell in self.cells)

    @property
    def run_count(self) -> str:
        """The number of runs, and how many are unfinished."""
        return f"{self.runs} ({self.unfinished} unfinished)" if self.unfinished else str(self.runs)


@dataclass(frozen=True)
class ResultTable:
    """A table: columns, rows, and notes below it.

    Parameters
    ----------
    title
        What the table shows; None for a single table.
    columns, rows
        Every row has one cell per column.
    notes
        Sentences below the table: how to read it, and how the numbers were measured.
    corner
        Title of the first column.
    deviation
        How to write a standard deviation: `72.0 ± 2.8`, or `72.0 (2.8)` as in the paper.
    marks_best
        True to mark the best accuracy of each column.
    counts_runs
        True if rows show their number of runs, as in plain tables. The paper's layouts say it in
        their notes, and in CSV have columns for the paper's numbers instead.

    Examples
    --------
    >>> cell = TableCell(MeanStd(72.04, 2.8), PaperNumber(71.5))
    >>> columns = (TableColumn("", "now", "A"),)
    >>> table = ResultTable("PACS", columns, (TableRow("tent", (cell,)),))
    >>> table.write(cell), table.write_paper(cell)
    ('72.0 ± 2.8', '71.50')
    """

    title: str | None
    columns: tuple[TableColumn, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    corner: str = "method"
    deviation: Literal["±", "()"] = "±"
    marks_best: bool = True
    counts_runs: bool = False

    def only(self, columns: Sequence[int]) -> ResultTable:
        """Return the table with some columns only, without notes."""
        rows = tuple(
            replace(row, cells=tuple(row.cells[column] for column in columns)) for row in self.rows
        )
        kept = tuple(self.columns[column] for column in columns)
        return replace(self, columns=kept, rows=rows, notes=())

    @property
    def signed_columns(self) -> set[int]:
        """The columns of differences, whose intervals are always shown."""
        return {n for row in self.rows for n, cell in enumerate(row.cells) if cell.signed}

    def with_inapplicable(self, labels: Iterable[str]) -> ResultTable:
        """Return the table with an empty row for each method that does not apply."""
        empty = tuple(TableCell() for _ in self.columns)
        rows = (TableRow(f"{label} ({DOES_NOT_APPLY})", empty) for label in dict.fromkeys(labels))
        return replace(self, rows=(*self.rows, *rows))

    def by_stream(self) -> list[ResultTable]:
        """Split into one table per stream, without notes."""
        streams = dict.fromkeys(column.stream for column in self.columns)
        return [
            self.only([n for n, column in enumerate(self.columns) if column.stream == stream])
            for stream in streams
        ]

    def without_deviations(self, keep: Container[int] = ()) -> ResultTable:
        """Return the same table with means only, except in some columns."""
        rows = tuple(
            replace(row, cells=tuple(c if n in keep else _mean(c) for n, c in enumerate(row.cells)))
            for row in self.rows
        )
        return replace(self, rows=rows)

    def write(self, cell: TableCell) -> str:
        """Format our number for people."""
        if cell.figure is None:
            return MISSING
        text = self._write(cell.figure.mean, cell.figure.deviation, cell.decimals)
        return f"+{text}" if cell.signed and not text.startswith("-") else text

    def write_paper(self, cell: TableCell) -> str:
        """Format the paper's number as printed there: two decimals, unless it is a count."""
        if cell.paper is None:
            return MISSING
        decimals = _PAPER_DECIMALS if cell.decimals else 0
        return self._write(cell.paper.value, cell.paper.deviation, decimals)

    def best(self) -> set[tuple[int, int]]:
        """Row and column of the best accuracies, compared by the decimals shown.

        A column with a single number has no best one. Unfinished runs saw an easier or harder part
        of the stream, so they are never the best.
        """
        if not self.marks_best:
            return set()
        return {
            (row, number)
            for number, column in enumerate(self.columns)
            if column.is_accuracy
            for row in self._best_rows(number)
        }

    def _best_rows(self, column: int) -> list[int]:
        means = {
            number: round(cell.figure.mean, cell.decimals)
            for number, row in enumerate(self.rows)
            if (cell := row.cells[column]).figure is not None and not row.unfinished
        }
        highest = max(means.values(), default=0.0)
        return [row for row, mean in means.items() if mean == highest] if len(means) > 1 else []

    def _write(self, mean: float, deviation: float | None, decimals: int) -> str:
        text = f"{mean:,.{decimals}f}"
        if deviation is None:
            return text
        spread = f"{deviation:.{decimals}f}"
        return f"{text} ± {spread}" if self.deviation == "±" else f"{text} ({spread})"


def _mean(cell: TableCell) -> TableCell:
    return cell if cell.figure is None else replace(cell, figure=MeanStd(cell.figure.mean))


def table_texts(
    table: ResultTable,
    mark_best: Callable[[str], str],
    mark_paper: Callable[[str], str],
    escape: Callable[[str], str] = str,
) -> Iterator[list[str]]:
    """Return the texts of all rows. Marks go around escaped texts."""
    best = table.best()
    for number, row in enumerate(table.rows):
        texts = [escape(table.write(cell)) for cell in row.cells]
        marked = (mark_best(t) if (number, n) in best else t for n, t in enumerate(texts))
        runs = [escape(row.run_count)] if table.counts_runs else []
        yield [escape(row.label), *marked, *runs]
        if row.has_paper:
            paper = (PAPER_ROW, *(table.write_paper(cell) for cell in row.cells))
            yield [mark_paper(escape(text)) for text in paper]


def method_table(
    summaries: Sequence[MethodSummary], title: str | None = None, notes: Sequence[str] = ()
) -> ResultTable:
    """Build a plain table: one row per method, without empty columns.

    >>> from attakit.report.runs import RunRecord
    >>> from attakit.report.summaries import summarise
    >>> run = RunRecord({"label": "tent"}, {}, [], [], [], {"stream_accuracy": 80.04})
    >>> table = method_table(summarise([run]))
    >>> [column.title for column in table.columns], table.write(table.rows[0].cells[0])
    (['stream', 'seconds'], '80.0')
    """
    segments = dict.fromkeys(name for summary in summaries for name in summary.segments)
    # title, decimals, True for an accuracy, and the values
    columns = [
        ("stream", 1, True, [summary.stream for summary in summaries]),
        *((name, 1, True, [s.segments.get(name) for s in summaries]) for name in segments),
        ("source", 1, True, [summary.source for summary in summaries]),
        ("labels", 0, False, [summary.labels for summary in summaries]),
        ("cost", 1, False, [summary.cost for summary in summaries]),
        ("seconds", 1, False, [summary.seconds for summary in summaries]),
        (MEMORY_TITLE, 0, False, [summary.memory_mb for summary in summaries]),
    ]
    known = [column for column in columns if any(figure is not None for figure in column[3])]
    rows = (
        TableRow(
            summary.label,
            tuple(TableCell(figures[n], decimals=decimals) for _, decimals, _, figures in known),
            summary.runs,
            summary.unfinished,
        )
        for n, summary in enumerate(summaries)
    )
    heads = tuple(TableColumn("", "", title, is_accuracy) for title, _, is_accuracy, _ in known)
    return ResultTable(title, heads, tuple(rows), tuple(notes), counts_runs=True)
