"""Tables of results for the terminal."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attakit.report.tables import MEMORY_TITLE, ResultTable, table_texts

_WIDE = 200
_ENDLESS = 10_000
_ROOMY = 120  # terminal width that fits all deviations of a plain table
_NARROW_NAME = 24  # characters of a method's name in a narrow table


def as_terminal_text(table: ResultTable) -> str:
    """Render the table as in a wide terminal, without colours."""
    console = Console(file=io.StringIO(), width=_WIDE, record=True)
    console.print(terminal_table(table, _WIDE))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"


def terminal_table(table: ResultTable, width: int) -> RenderableType:
    """Render a table for a terminal width."""
    if table.counts_runs:
        return _plain_tables(table, width)
    return _layout(table, width)


def _plain_tables(table: ResultTable, width: int) -> RenderableType:
    """Render a plain table, split into pieces if its columns do not fit the width.

    A narrow one has deviations for stream and differences only, and no memory.
    """
    is_narrow, shown = width < _ROOMY, table
    if is_narrow:
        kept = [n for n, column in enumerate(table.columns) if column.title != MEMORY_TITLE]
        shown = table.only(kept)
        shown = shown.without_deviations(keep=[0, *shown.signed_columns])
    pieces = _fitting(shown, width, lambda part: _plain_table(part, None, is_narrow=is_narrow))
    last = replace(pieces[-1], title=None if len(pieces) > 1 else table.title)
    tables: list[RenderableType] = [
        Padding(
            _plain_table(
                replace(piece, title=None if n else table.title), None, is_narrow=is_narrow
            ),
            (0, 0, 1, 0),
            expand=False,
        )
        for n, piece in enumerate(pieces[:-1])
    ]
    end = _plain_table(last, list(table.notes), is_narrow=is_narrow)
    return Group(*tables, end) if tables else end


def _plain_table(shown: ResultTable, notes: list[str] | None, *, is_narrow: bool) -> Table:
    has_memory = any(column.title == MEMORY_TITLE for column in shown.columns)
    # Runs in one process, such as the demo's, share its peak.
    memory = ["MB: peak memory of the process"] if has_memory else []
    found = _empty_table(
        title=None if shown.title is None else escape(shown.title),
        caption=None if notes is None else _caption(shown, [*memory, *notes]),
        padding=(0, 0 if is_narrow else 1, 0, 0),
    )
    # Shorten a long method name rather than numbers.
    name_width = _NARROW_NAME if is_narrow else None
    found.add_column(shown.corner, no_wrap=not is_narrow, max_width=name_width, overflow="fold")
    for column in shown.columns:
        found.add_column(escape(column.title), justify="right", no_wrap=True)
    for texts in _rich_texts(shown):
        found.add_row(*texts[:-1])  # the caption has the number of runs
    return found


def _caption(table: ResultTable, notes: list[str]) -> str:
    counts = sorted(row.runs for row in table.rows) or [0]
    several = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    mean = f", mean ± standard deviation over {several} runs" if counts[-1] > 1 else ""
    unfinished = [
        f"{row.label}: {row.unfinished} of {row.runs} not finished"
        for row in table.rows
        if row.unfinished
    ]
    parts = [f"Accuracy in percent{mean}", *unfinished, *notes]
    return escape(". ".join([*(part.removesuffix(".") for part in parts[:-1]), parts[-1]]))


def _layout(table: ResultTable, width: int) -> Group:
    """Render one of the paper's layouts: its streams one below the other.

    If deviations do not fit the width, they are omitted, and the notes say so. Columns that still
    do not fit go below.
    """
    too_wide = any(_width(_stream_table(part)) > width for part in table.by_stream())
    is_short = too_wide and not table.signed_columns
    shown = table.without_deviations() if is_short else table
    parts = [piece for part in shown.by_stream() for piece in _fitting(part, width, _stream_table)]
    blocks = [Padding(_stream_table(part), (0, 0, 1, 0), expand=False) for part in parts]
    remark = "Deviations are omitted because the terminal is too narrow." if is_short else ""
    notes = Text(" ".join([*table.notes, remark]).strip(), style="dim")
    below = Padding(notes, (0, 0, 1, 0), expand=False)
    return Group(Text(table.title or "", style="bold"), "", *blocks, below)


def _width(table: Table) -> int:
    endless = Console(width=_ENDLESS, file=io.StringIO())
    return endless.measure(table).maximum


def _fitting(
    table: ResultTable, width: int, draw: Callable[[ResultTable], Table]
) -> list[ResultTable]:
    """Split a table into as many pieces as it needs to fit a width."""
    if _width(draw(replace(table, title=None))) <= width:
        return [table]
    names = _width(draw(replace(table.only([]), title=None)))
    pieces: list[list[int]] = [[]]
    taken = names
    for column in range(len(table.columns)):
        own = _width(draw(replace(table.only([column]), title=None))) - names
        if pieces[-1] and taken + own > width:
            pieces.append([])
            taken = names
        pieces[-1].append(column)
        taken += own
    return [table.only(piece) for piece in pieces]


def _stream_table(table: ResultTable) -> Table:
    """Return the columns of one stream."""
    stream = table.columns[0].stream if table.columns else ""
    found = _empty_table(title=escape(f"{stream} stream") if stream else None)
    found.add_column(table.corner, no_wrap=True)
    for column in table.columns:
        words = f"{column.group} {column.title}".strip().replace(" ", "\n")
        found.add_column(escape(words), justify="right", no_wrap=True)
    for texts in _rich_texts(table):
        found.add_row(*texts)
    return found


def _empty_table(**options: Any) -> Table:
    options = {
        "padding": (0, 1, 0, 0),
        "title_justify": "left",
        "caption_justify": "left",
    } | options
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, **options)


def _rich_texts(table: ResultTable) -> Iterator[list[str]]:
    return table_texts(table, "[bold green]{}[/]".format, "[dim]{}[/]".format, escape)
