"""Tables of results as Markdown, CSV, LaTeX and JSON; `terminal_tables` is for the terminal.

The paper's numbers are in a second line below ours; in CSV they have their own columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Literal

from attakit.errors import check_choice
from attakit.report.tables import MEMORY_TITLE, ResultTable, TableCell, TableColumn, table_texts
from attakit.report.terminal_tables import as_terminal_text

TableForm = Literal["markdown", "csv", "latex", "rich"]

_PLAIN_RANKS = {"stream": -1, "source": 1, "labels": 2, "cost": 3, "seconds": 4, MEMORY_TITLE: 5}
TABLE_FORMS = ("markdown", "csv", "latex", "rich")
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


def render_tables(tables: Sequence[ResultTable], form: TableForm = "markdown") -> str:
    """Write tables one after the other; CSV is one block with the columns of all.

    Values are mean ± standard deviation over runs, and the best accuracies are marked. CSV has full
    precision, a column for each deviation, and no notes.

    >>> from attakit.report.summaries import MeanStd
    >>> from attakit.report.tables import PaperNumber, TableRow
    >>> row = TableRow("tent", (TableCell(MeanStd(66.0), PaperNumber(67.29)),))
    >>> print(render_tables([ResultTable("PACS", (TableColumn("", "now", "A"),), (row,))]), end="")
    **PACS**
    <BLANKLINE>
    | method | now A |
    |---|---:|
    | tent | 66.0 |
    | *paper* | *67.29* |
    """
    check_choice("render_tables", "form", form, TABLE_FORMS)
    if form == "csv":
        return _csv(tables)
    writers: dict[str, Callable[[ResultTable], str]] = {
        "markdown": _markdown,
        "latex": _latex,
        "rich": as_terminal_text,
    }
    return "\n".join(writers[form](table) for table in tables)


def _markdown(table: ResultTable) -> str:
    def line(texts: Sequence[str]) -> str:
        return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |\n"

    titles = [table.corner, *(column.full_title for column in table.columns), *_run_title(table)]
    rule = "|---|" + "---:|" * (len(titles) - 1) + "\n"
    body = "".join(line(texts) for texts in table_texts(table, "**{}**".format, "*{}*".format))
    title = f"**{table.title}**\n\n" if table.title else ""
    notes = f"\n{' '.join(table.notes)}\n" if table.notes else ""
    return title + line(titles) + rule + body + notes


def _run_title(table: ResultTable) -> list[str]:
    return ["runs"] if table.counts_runs else []


def _csv(tables: Sequence[ResultTable]) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    columns = _merged_titles(tables)
    corner = next((table.corner for table in tables), "method")
    has_titles = any(table.title for table in tables)
    counts_runs = any(table.counts_runs for table in tables)
    kinds = ("", " std") if counts_runs else ("", " std", " paper", " paper std")
    writer.writerow(
        [
            *(["table"] if has_titles else []),
            corner,
            *(column + kind for column in columns for kind in kinds),
            *(["runs", "unfinished"] if counts_runs else []),
        ]
    )
    for table in tables:
        for row in table.rows:
            cells = {c.full_title: e for c, e in zip(table.columns, row.cells, strict=True)}
            numbers = [_numbers(cells.get(column)) for column in columns]
            writer.writerow(
                [
                    *([table.title] if has_titles else []),
                    row.label,
                    *(number for own in numbers for number in own[: len(kinds)]),
                    *((row.runs, row.unfinished) if counts_runs else ()),
                ]
            )
    return file.getvalue()


def _merged_titles(tables: Sequence[ResultTable]) -> list[str]:
    """Merge the columns of all tables; in plain ones segments stay between stream and rest."""
    titles = list(dict.fromkeys(column.full_title for table in tables for column in table.columns))
    if any(table.counts_runs for table in tables):
        titles.sort(key=lambda title: _PLAIN_RANKS.get(title, 0))
    return titles


def _numbers(cell: TableCell | None) -> tuple[float | None, ...]:
    """Return our number and the paper's in full precision, each with its deviation."""
    ours, theirs = (None, None) if cell is None else (cell.figure, cell.paper)
    return (
        *((ours.mean, ours.deviation) if ours else (None, None)),
        *((theirs.value, theirs.deviation) if theirs else (None, None)),
    )


def _latex(table: ResultTable) -> str:
    texts = table_texts(table, r"\textbf{{{}}}".format, r"\textit{{{}}}".format, escape=latex_text)
    titles = [table.corner, *(column.title for column in table.columns), *_run_title(table)]
    comments = [
        *([table.title] if table.title else []),
        *(table.notes if table.counts_runs else ()),
    ]
    notes = rf"{{\par\smallskip\footnotesize {latex_text(' '.join(table.notes))}\par}}" + "\n"
    return (
        "".join(f"% {comment}\n" for comment in comments)
        + f"\\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}\n\\toprule\n"
        + _latex_groups(table.columns)
        + _latex_row([latex_text(title) for title in titles])
        + "\\midrule\n"
        + "".join(_latex_row(row) for row in texts)
        + "\\bottomrule\n\\end{tabular}\n"
        + ("" if table.counts_runs else notes)
    )


def latex_text(text: str) -> str:
    """Escape the characters that are special in LaTeX.

    >>> latex_text("a_b ≤ 5 %")
    'a\\\\_b $\\\\le$ 5 \\\\%'
    """
    return "".join(_LATEX_SPECIAL.get(sign, sign) for sign in text)


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(texts) + r" \\" + "\n"


def _latex_groups(columns: Sequence[TableColumn]) -> str:
    """Make a line with stream and measure above their columns."""
    cells, rules, start = [""], "", 2
    for name, members in groupby(columns, key=lambda one: f"{one.stream} {one.group}".strip()):
        count = len(list(members))
        cells.append(rf"\multicolumn{{{count}}}{{c}}{{{latex_text(name)}}}")
        rules += rf"\cmidrule(lr){{{start}-{start + count - 1}}}" if name else ""
        start += count
    return _latex_row(cells) + rules + "\n" if rules else ""


def layout_json(table: ResultTable) -> dict[str, Any]:
    """Return a table in one of the paper's layouts, ready for JSON."""

    def column(one: TableColumn) -> dict[str, Any]:
        return {
            "part": one.stream,
            "group": one.group,
            "title": one.title,
            "is_accuracy": one.is_accuracy,
        }

    return {
        "title": table.title,
        "heads": [column(one) for one in table.columns],
        "lines": [
            {"label": row.label, "entries": [asdict(cell) for cell in row.cells]}
            for row in table.rows
        ],
        "notes": table.notes,
        "corner": table.corner,
        "deviation": table.deviation,
        "marks_best": table.marks_best,
    }
