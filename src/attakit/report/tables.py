"""Tables of methods as Markdown, CSV, LaTeX and for the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attakit.errors import check_choice
from attakit.report.figures import Figure, Row, best_rows

Form = Literal["markdown", "csv", "latex", "rich"]
Titled = tuple[str | None, Sequence[Row], Sequence[str]]  # title, rows, notes

FORMS = ("markdown", "csv", "latex", "rich")
_WIDE = 200
_NARROW_NAME = 24  # letters of a method's name in a line of a narrow table
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "→": r"$\to$",
    "–": "--",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its title and how to find its figure; a narrow table may drop it."""

    title: str
    pick: Callable[[Row], Figure | None]
    decimals: int = 1
    is_accuracy: bool = True
    is_dropped: bool = False


def columns(rows: Sequence[Row], *, narrow: bool = False) -> list[Column]:
    """The columns that have at least one figure."""
    segments = list(dict.fromkeys(name for row in rows for name in row.segments))
    every = [
        Column("stream", lambda row: row.stream),
        *(Column(name, _segment(name)) for name in segments),
        Column("source", lambda row: row.source),
        Column("labels", lambda row: row.labels, decimals=0, is_accuracy=False),
        Column("seconds", lambda row: row.seconds, is_accuracy=False),
        Column("MB", lambda row: row.memory_mb, decimals=0, is_accuracy=False, is_dropped=True),
    ]
    shown = [column for column in every if not (narrow and column.is_dropped)]
    return [column for column in shown if any(column.pick(row) is not None for row in rows)]


def _segment(name: str) -> Callable[[Row], Figure | None]:
    return lambda row: row.segments.get(name)


def render(
    rows: Sequence[Row],
    form: Form = "markdown",
    *,
    title: str | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Write rows as a table; the best accuracies are marked.

    Accuracies are percent, mean ± standard deviation over seeds. CSV gives the deviation a column
    of its own and full precision, the title a column before them, and has no place for notes.

    >>> from attakit.report.figures import summarise
    >>> from attakit.report.runs import RunRecord
    >>> end = {"kind": "end", "stream_accuracy": 80.04}
    >>> run = RunRecord({"method": {"name": "tent"}}, {}, [], [], [], end)
    >>> print(render(summarise([run])), end="")
    | method | stream | seconds | runs |
    |---|---:|---:|---:|
    | tent | 80.0 | 0.0 | 1 |
    """
    return render_comparisons([(title, rows, notes)], form)


def render_comparisons(tables: Sequence[Titled], form: Form) -> str:
    """Write tables one after the other; as CSV in one block, whose columns are those of all."""
    check_choice("render", "form", form, FORMS)
    if form == "csv":
        return _csv(tables)
    writers = {"markdown": _markdown, "latex": _latex, "rich": _plain}
    return "\n".join(writers[form](rows, title, notes) for title, rows, notes in tables)


def show(figure: Figure | None, decimals: int = 1) -> str:
    """Write a figure as people read it.

    >>> show(Figure(81.234, 0.56))
    '81.2 ± 0.6'
    """
    if figure is None:
        return "–"
    mean = f"{figure.mean:,.{decimals}f}"
    return mean if figure.deviation is None else f"{mean} ± {figure.deviation:.{decimals}f}"


def run_count(row: Row) -> str:
    """How many runs a row stands for, and how many of them still go on."""
    return f"{row.runs} ({row.unfinished} unfinished)" if row.unfinished else str(row.runs)


def cells(
    rows: Sequence[Row], mark: Callable[[str], str], *, narrow: bool = False
) -> list[list[str]]:
    """The texts of a table without its head, with `mark` put around the best accuracies."""
    texts: list[list[str]] = [[row.label] for row in rows]
    for column in columns(rows, narrow=narrow):
        best = best_rows(rows, column.pick) if column.is_accuracy else set()
        for place, row in enumerate(rows):
            text = show(column.pick(row), column.decimals)
            texts[place].append(mark(text) if place in best else text)
    return [[*text, run_count(row)] for text, row in zip(texts, rows, strict=True)]


def titles(rows: Sequence[Row], *, narrow: bool = False) -> list[str]:
    """The head of a table."""
    return ["method", *(column.title for column in columns(rows, narrow=narrow)), "runs"]


def _markdown(rows: Sequence[Row], title: str | None, notes: Sequence[str]) -> str:
    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |\n"

    head = titles(rows)
    rule = "|---|" + "---:|" * (len(head) - 1) + "\n"
    body = "".join(line(text) for text in cells(rows, "**{}**".format))
    above = f"**{title}**\n\n" if title else ""
    return above + line(head) + rule + body + (f"\n{' '.join(notes)}\n" if notes else "")


def _latex(rows: Sequence[Row], title: str | None, notes: Sequence[str]) -> str:
    def line(texts: Sequence[str]) -> str:
        return " & ".join(texts) + r" \\" + "\n"

    # The mark is put on escaped text, so that its own backslash and braces stay.
    marked = cells(rows, lambda text: "\0" + text)
    body = [[_latex_cell(text) for text in texts] for texts in marked]
    head = [_latex_cell(title) for title in titles(rows)]
    remarks = "".join(f"% {remark}\n" for remark in ([title] if title else []) + [*notes])
    top = r"\begin{tabular}{l" + "r" * (len(head) - 1) + "}\n\\toprule\n"
    middle = line(head) + "\\midrule\n" + "".join(line(texts) for texts in body)
    return remarks + top + middle + "\\bottomrule\n\\end{tabular}\n"


def latex_text(text: str) -> str:
    """A text with the signs escaped that mean something to LaTeX.

    >>> latex_text("a_b ≤ 5 %")
    'a\\\\_b $\\\\le$ 5 \\\\%'
    """
    return "".join(_LATEX_SPECIAL.get(sign, sign) for sign in text)


def _latex_cell(text: str) -> str:
    escaped = latex_text(text.lstrip("\0"))
    return rf"\textbf{{{escaped}}}" if text.startswith("\0") else escaped


def _csv(tables: Sequence[Titled]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    chosen = columns([row for _, rows, _ in tables for row in rows])
    pairs = [name for column in chosen for name in (column.title, f"{column.title} std")]
    has_titles = any(title for title, _, _ in tables)
    writer.writerow([*(["table"] if has_titles else []), "method", *pairs, "runs", "unfinished"])
    for title, rows, _ in tables:
        for row in rows:
            figures = [column.pick(row) for column in chosen]
            numbers = [n for f in figures for n in ((f.mean, f.deviation) if f else (None, None))]
            above = [title] if has_titles else []
            writer.writerow([*above, row.label, *numbers, row.runs, row.unfinished])
    return file.getvalue()


def rich_table(
    rows: Sequence[Row],
    title: str | None = None,
    *,
    notes: Sequence[str] = (),
    narrow: bool = False,
) -> Table:
    """The table as a terminal shows it.

    A narrow one has deviations for the stream only, and no memory.
    """
    table = Table(
        title=None if title is None else escape(title),
        caption=_caption(rows, [*_about_memory(rows, narrow=narrow), *notes]),
        box=box.SIMPLE_HEAD,
        padding=(0, 0 if narrow else 1, 0, 0),
        pad_edge=False,
        show_edge=False,
        title_justify="left",
        caption_justify="left",
    )
    for place, name in enumerate(titles(rows, narrow=narrow)[:-1]):
        folds = narrow and place == 0  # a long name of a method gives way to figures
        table.add_column(
            escape(name),
            justify="right" if place else "left",
            no_wrap=place < 2 and not folds,
            max_width=_NARROW_NAME if folds else None,
            overflow="fold",
        )
    for label, *texts, _ in cells(rows, lambda text: "\0" + text, narrow=narrow):
        if narrow:
            texts[1:] = [text.split(" ±")[0] for text in texts[1:]]
        table.add_row(*(_rich_cell(text) for text in (label, *texts)))
    return table


def _about_memory(rows: Sequence[Row], *, narrow: bool) -> list[str]:
    """Whose memory it is: runs in one process, as those of the demo, share the peak."""
    has_memory = any(column.title == "MB" for column in columns(rows, narrow=narrow))
    return ["MB: peak memory of the process"] if has_memory else []


def _caption(rows: Sequence[Row], notes: Sequence[str]) -> str:
    counts = sorted(row.runs for row in rows) or [0]
    several = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    told = f", mean ± standard deviation over {several} runs" if counts[-1] > 1 else ""
    going = [
        f"{escape(row.label)}: {row.unfinished} of {row.runs} not finished"
        for row in rows
        if row.unfinished
    ]
    return ". ".join([f"Accuracy in percent{told}", *going, *(escape(note) for note in notes)])


def _rich_cell(text: str) -> str:
    escaped = escape(text.lstrip("\0"))
    return f"[bold green]{escaped}[/]" if text.startswith("\0") else escaped


def _plain(rows: Sequence[Row], title: str | None, notes: Sequence[str]) -> str:
    console = Console(file=io.StringIO(), width=_WIDE, record=True)
    console.print(rich_table(rows, title, notes=notes))
    return "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"
