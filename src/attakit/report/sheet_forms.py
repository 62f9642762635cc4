"""Sheets as Markdown, CSV, LaTeX and for the terminal.

The paper's numbers stand in a second line below ours; in CSV in columns of their own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from rich import box
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attakit.errors import check_choice
from attakit.report.sheets import Entry, Head, Sheet
from attakit.report.tables import FORMS, Form, latex_text

PAPER_ROW = "paper"
_WIDE = 200
_ENDLESS = 10_000


def render_sheets(sheets: Sequence[Sheet], form: Form = "markdown") -> str:
    """Write sheets one after the other; as CSV in one block, whose columns are those of all.

    >>> from attakit.report.figures import Figure, Number
    >>> from attakit.report.sheets import Entry, Line
    >>> line = Line("tent", (Entry(Figure(66.0), Number(67.29)),))
    >>> print(render_sheets([Sheet("PACS", (Head("", "now", "A"),), (line,), ())]), end="")
    **PACS**
    <BLANKLINE>
    | method | now A |
    |---|---:|
    | tent | 66.0 |
    | *paper* | *67.29* |
    """
    check_choice("render_sheets", "form", form, FORMS)
    if form == "csv":
        return _csv(sheets)
    writers = {"markdown": _markdown, "latex": _latex, "rich": _plain}
    return "\n".join(writers[form](sheet) for sheet in sheets)


def _lines(
    sheet: Sheet, best: Callable[[str], str], paper: Callable[[str], str]
) -> Iterator[list[str]]:
    """The texts of all rows, with marks around the best and around the paper's."""
    marked = sheet.best()
    for row, line in enumerate(sheet.lines):
        texts = [sheet.show(entry) for entry in line.entries]
        yield [
            line.label,
            *(best(text) if (row, place) in marked else text for place, text in enumerate(texts)),
        ]
        if line.has_paper:
            yield [paper(PAPER_ROW), *(paper(sheet.show_paper(entry)) for entry in line.entries)]


def _markdown(sheet: Sheet) -> str:
    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |\n"

    head = [sheet.corner, *(head.full for head in sheet.heads)]
    rule = "|---|" + "---:|" * len(sheet.heads) + "\n"
    body = "".join(line(texts) for texts in _lines(sheet, "**{}**".format, "*{}*".format))
    notes = "\n" + " ".join(sheet.notes) + "\n" if sheet.notes else ""
    return f"**{sheet.title}**\n\n" + line(head) + rule + body + notes


def _csv(sheets: Sequence[Sheet]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    kinds = ("", " std", " paper", " paper std")
    heads = list(dict.fromkeys(head.full for sheet in sheets for head in sheet.heads))
    corners = list(dict.fromkeys(sheet.corner for sheet in sheets))
    writer.writerow(["table", *corners[:1], *(head + kind for head in heads for kind in kinds)])
    for sheet in sheets:
        for line in sheet.lines:
            entries = {h.full: e for h, e in zip(sheet.heads, line.entries, strict=True)}
            numbers = [number for head in heads for number in _numbers(entries.get(head))]
            writer.writerow([sheet.title, line.label, *numbers])
    return file.getvalue()


def _numbers(entry: Entry | None) -> Iterator[float | None]:
    """Our figure and the paper's number in full precision, each with its deviation."""
    ours, theirs = (None, None) if entry is None else (entry.figure, entry.paper)
    yield from (ours.mean, ours.deviation) if ours else (None, None)
    yield from (theirs.value, theirs.deviation) if theirs else (None, None)


def _latex(sheet: Sheet) -> str:
    # Marks go around escaped text, so that their own backslash and braces stay.
    rows = _lines(sheet, lambda text: "\1" + text, lambda text: "\2" + text)
    body = "".join(_latex_row([_latex_cell(text) for text in texts]) for texts in rows)
    titles = [sheet.corner, *(head.title for head in sheet.heads)]
    return (
        f"% {sheet.title}\n\\begin{{tabular}}{{l{'r' * len(sheet.heads)}}}\n\\toprule\n"
        + _latex_groups(sheet.heads)
        + _latex_row([latex_text(title) for title in titles])
        + f"\\midrule\n{body}\\bottomrule\n\\end{{tabular}}\n"
        + (rf"{{\par\smallskip\footnotesize {latex_text(' '.join(sheet.notes))}\par}}" + "\n")
    )


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(texts) + r" \\" + "\n"


def _latex_groups(heads: Sequence[Head]) -> str:
    """A line with the stream and what is measured above the columns they hold for."""
    cells, rules, column = [""], "", 2
    for name, members in groupby(heads, key=lambda head: f"{head.part} {head.group}".strip()):
        count = len(list(members))
        cells.append(rf"\multicolumn{{{count}}}{{c}}{{{latex_text(name)}}}")
        rules += rf"\cmidrule(lr){{{column}-{column + count - 1}}}" if name else ""
        column += count
    return _latex_row(cells) + rules + "\n" if rules else ""


def _latex_cell(text: str) -> str:
    marks = {"\1": r"\textbf{%s}", "\2": r"\textit{%s}"}
    return marks.get(text[:1], "%s") % latex_text(text.lstrip("\1\2"))


def sheet_blocks(sheet: Sheet, width: int) -> Group:
    """A sheet as a terminal shows it: its streams one below the other.

    Where deviations do not fit the width they are left out, and the notes say so. Columns that
    do not fit even then go below.
    """
    short = any(_width(part) > width for part in sheet.parts())
    shown = sheet.without_deviations() if short else sheet
    blocks = [block for part in shown.parts() for block in _fitting(part, width)]
    tables = [Padding(_rich_table(block), (0, 0, 1, 0), expand=False) for block in blocks]
    told = "Deviations are left out: the terminal is too narrow." if short else ""
    notes = Text(" ".join([*sheet.notes, told]).strip(), style="dim")
    below = Padding(notes, (0, 0, 1, 0), expand=False)
    return Group(Text(sheet.title, style="bold"), "", *tables, below)


def _width(sheet: Sheet) -> int:
    endless = Console(width=_ENDLESS, file=io.StringIO())
    return endless.measure(_rich_table(sheet)).maximum


def _fitting(sheet: Sheet, width: int) -> list[Sheet]:
    """A sheet in as many pieces as it takes to fit a width."""
    if _width(sheet) <= width:
        return [sheet]
    names = _width(sheet.only([]))
    pieces: list[list[int]] = [[]]
    taken = names
    for place in range(len(sheet.heads)):
        own = _width(sheet.only([place])) - names
        if pieces[-1] and taken + own > width:
            pieces.append([])
            taken = names
        pieces[-1].append(place)
        taken += own
    return [sheet.only(piece) for piece in pieces]


def _rich_table(sheet: Sheet) -> Table:
    part = sheet.heads[0].part if sheet.heads else ""
    table = Table(
        title=escape(f"{part} stream") if part else None,
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        title_justify="left",
    )
    table.add_column(sheet.corner, no_wrap=True)
    for head in sheet.heads:
        words = f"{head.group} {head.title}".strip().replace(" ", "\n")
        table.add_column(escape(words), justify="right", no_wrap=True)
    for texts in _lines(sheet, lambda text: "\1" + text, lambda text: "\2" + text):
        table.add_row(*(_rich_cell(text) for text in texts))
    return table


def _rich_cell(text: str) -> str:
    marks = {"\1": "[bold green]%s[/]", "\2": "[dim]%s[/]"}
    return marks.get(text[:1], "%s") % escape(text.lstrip("\1\2"))


def _plain(sheet: Sheet) -> str:
    console = Console(file=io.StringIO(), width=_WIDE, record=True)
    console.print(sheet_blocks(sheet, _WIDE))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"
