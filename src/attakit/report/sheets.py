"""A table in one of the paper's layouts, not yet written in any form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from attakit.report.figures import Figure, Number

MISSING = "–"
_PAPER_DECIMALS = 2


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column: its stream, what is measured, and of what.

    Examples
    --------
    >>> Head("domain-wise", "after", "A").full
    'domain-wise after A'
    """

    part: str
    group: str
    title: str
    is_accuracy: bool = True

    @property
    def full(self) -> str:
        """All of it in one line."""
        return " ".join(word for word in (self.part, self.group, self.title) if word)


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell: our figure, and the paper's number for the same thing."""

    figure: Figure | None = None
    paper: Number | None = None
    decimals: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A row of cells and its name."""

    label: str
    entries: tuple[Entry, ...]

    @property
    def has_paper(self) -> bool:
        """Whether the paper has a number for any of the cells."""
        return any(entry.paper is not None for entry in self.entries)


@dataclass(frozen=True)
class Sheet:
    """A table: heads, rows, and notes below it.

    Parameters
    ----------
    title
        What the table shows.
    heads, lines
        Columns and rows; every row has an entry per column.
    notes
        Sentences to stand below: how to read it, and under which conditions it came about.
    corner
        Head of the first column.
    deviation
        How a standard deviation is written: `72.0 ± 2.8`, or `72.0 (2.8)` as the paper does.
    marks_best
        Whether the best accuracy of each column is marked.

    Examples
    --------
    >>> entry = Entry(Figure(72.04, 2.8), Number(71.5))
    >>> sheet = Sheet("PACS", (Head("", "now", "A"),), (Line("tent", (entry,)),), ())
    >>> sheet.show(entry), sheet.show_paper(entry)
    ('72.0 ± 2.8', '71.50')
    """

    title: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    corner: str = "method"
    deviation: Literal["±", "()"] = "±"
    marks_best: bool = True

    @property
    def has_paper(self) -> bool:
        return any(line.has_paper for line in self.lines)

    def only(self, places: Sequence[int]) -> Sheet:
        """The columns at some places, without notes."""
        heads = tuple(self.heads[place] for place in places)
        lines = tuple(
            Line(line.label, tuple(line.entries[place] for place in places)) for line in self.lines
        )
        return replace(self, heads=heads, lines=lines, notes=())

    def parts(self) -> list[Sheet]:
        """The columns of each stream, without notes."""
        names = dict.fromkeys(head.part for head in self.heads)
        return [
            self.only([place for place, head in enumerate(self.heads) if head.part == name])
            for name in names
        ]

    def without_deviations(self) -> Sheet:
        """The same table with means only."""
        lines = []
        for line in self.lines:
            means = (None if e.figure is None else Figure(e.figure.mean) for e in line.entries)
            pairs = zip(line.entries, means, strict=True)
            lines.append(Line(line.label, tuple(replace(e, figure=mean) for e, mean in pairs)))
        return replace(self, lines=tuple(lines))

    def show(self, entry: Entry) -> str:
        """Our figure as people read it."""
        figure = entry.figure
        if figure is None:
            return MISSING
        return self._written(figure.mean, figure.deviation, entry.decimals)

    def show_paper(self, entry: Entry) -> str:
        """The paper's number, as printed there: with two decimals, unless it is a count."""
        if entry.paper is None:
            return MISSING
        decimals = _PAPER_DECIMALS if entry.decimals else 0
        return self._written(entry.paper.value, entry.paper.deviation, decimals)

    def best(self) -> set[tuple[int, int]]:
        """Row and column of the best accuracies, as far as the shown decimals tell."""
        if not self.marks_best or len(self.lines) < 2:
            return set()
        found: set[tuple[int, int]] = set()
        for column, head in enumerate(self.heads):
            if head.is_accuracy:
                found |= {(row, column) for row in self._best_rows(column)}
        return found

    def _best_rows(self, column: int) -> Sequence[int]:
        means = {
            row: round(figure.mean, line.entries[column].decimals)
            for row, line in enumerate(self.lines)
            if (figure := line.entries[column].figure) is not None
        }
        if len(means) < 2:
            return ()
        return [row for row, mean in means.items() if mean == max(means.values())]

    def _written(self, mean: float, deviation: float | None, decimals: int) -> str:
        text = f"{mean:,.{decimals}f}"
        if deviation is None:
            return text
        spread = f"{deviation:.{decimals}f}"
        return f"{text} ± {spread}" if self.deviation == "±" else f"{text} ({spread})"
