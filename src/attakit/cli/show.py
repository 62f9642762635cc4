"""`attakit table`, `plot`, `report` and `list`: show results and names, run nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from attakit.bench.suites.cells import SUITE_FILE
from attakit.build.data import DATA_SETS, summary
from attakit.cli.options import Json, Quiet, RunFolders
from attakit.cli.output import print_json, say
from attakit.errors import SettingError, StateError
from attakit.methods import METHODS
from attakit.paper.tables.layouts import LAYOUTS, check_layout, lay_out
from attakit.report.comparisons import Comparison, compare
from attakit.report.console import print_table
from attakit.report.html import write_report
from attakit.report.label_gain import label_gain
from attakit.report.leaderboard import leaderboard_tables
from attakit.report.paired import paired_tables
from attakit.report.plots import PlotKind, draw_plot
from attakit.report.runs import RunRecord, find_runs, read_run
from attakit.report.table_forms import TableForm, layout_json, render_tables
from attakit.select import SELECTORS
from attakit.settings.suite import LEADERBOARD, PAIRED, PLAIN
from attakit.stream.order import ORDERS


def table(
    folders: RunFolders,
    form: Annotated[TableForm, typer.Option("--format", help="Output format.")] = "rich",
    layout: Annotated[
        str | None,
        typer.Option(
            help=f"One of the paper's layouts, with its numbers: {', '.join(LAYOUTS)}; {PAIRED}; "
            f"{LEADERBOARD}; or {PLAIN}. By default the layout of the suite that the folders "
            f"belong to."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="METHOD",
            help=f"Label of the method that the layout {PAIRED} compares with; by default the "
            f"suite's.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the results of runs as tables, one per stream."""
    runs = [read_run(folder) for folder in find_runs(folders)]
    chosen = layout or str(_suite(folders).get("layout") or PLAIN)
    check_layout(chosen)
    comparisons = compare(runs) if chosen == PLAIN else []
    if chosen == PLAIN:
        tables = [one.table for one in comparisons]
    elif chosen == PAIRED:
        tables = paired_tables(runs, against or _against(folders, runs))
    elif chosen == LEADERBOARD:
        tables = leaderboard_tables(runs)
    else:
        tables = lay_out(chosen, runs)
    if as_json and chosen == PLAIN:
        print_json({"tables": [_as_json(one) for one in comparisons]})
    elif as_json:
        print_json({"sheets": [layout_json(one) for one in tables]})
    elif form == "rich":
        for number, one in enumerate(tables):
            if number and chosen == PLAIN:
                say("")
            print_table(one)
    else:
        sys.stdout.write(render_tables(tables, form))
        if form == "csv":
            _say_the_label_gain(compare(runs))


def _say_the_label_gain(comparisons: Sequence[Comparison]) -> None:
    """Print the gain of the labels on standard error, because CSV has no place for notes."""
    errors = Console(stderr=True, highlight=False)
    for one in comparisons:
        sentence = label_gain(one.runs)
        if sentence:
            errors.print(
                escape(f"{one.title}: {sentence}" if one.title else sentence), soft_wrap=True
            )


def _against(folders: Sequence[Path], runs: Sequence[RunRecord]) -> str:
    """Return the method that the suite of the folders compares with."""
    named = _suite(folders).get("against")
    if named:
        return str(named)
    labels = ", ".join(dict.fromkeys(run.label for run in runs))
    raise SettingError(
        f"The layout {PAIRED} compares with one method, and none is named. Give --against METHOD; "
        f"there are {labels}."
    )


def _suite(folders: Sequence[Path]) -> dict[str, Any]:
    """Return the facts about the one suite that all folders belong to; empty without one.

    A folder belongs to a suite if it is the suite's own, or contains some of its cells.
    """
    files = {_suite_file(folder) for folder in folders}
    file = files.pop()
    if file is None or files:
        return {}
    try:
        suite = dict(json.loads(file.read_text(encoding="utf-8")).items())
    except (ValueError, AttributeError) as error:
        raise StateError(
            f"{file} is damaged: it is not a JSON object about a suite. Give --layout, or run "
            f"`attakit bench` again, which rewrites it."
        ) from error
    names = [f"{cell['name']}/" for cell in suite.get("cells", [])]
    return suite if all(_has_cells(folder, file.parent, names) for folder in folders) else {}


def _has_cells(folder: Path, home: Path, names: Sequence[str]) -> bool:
    """True for a suite's own folder, and for one that contains cells; not for other runs in it."""
    inside = folder.resolve().relative_to(home)
    return inside == Path() or any(name.startswith(f"{inside.as_posix()}/") for name in names)


def _suite_file(folder: Path) -> Path | None:
    """The list of cells of the nearest suite around a folder."""
    whole = folder.resolve()
    places = (place / SUITE_FILE for place in (whole, *whole.parents))
    return next((place for place in places if place.is_file()), None)


def _as_json(found: Comparison) -> dict[str, Any]:
    rows = [asdict(one) for one in found.summaries]
    return {
        "title": found.title,
        "rows": rows,
        "inapplicable": found.inapplicable,
        "notes": found.notes,
    }


def plot(
    folders: RunFolders,
    kind: Annotated[PlotKind, typer.Option(help="What to draw.")] = "labels",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write: .png, .svg or .pdf.")
    ] = Path("plot.png"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Plot accuracy along the stream, against labels or seconds, an ablation, or ranks."""
    runs = [read_run(folder) for folder in find_runs(folders)]
    draw_plot([run for run in runs if not run.inapplicable], kind, out)
    if as_json:
        print_json({"plot": str(out.resolve())})
    elif not quiet:
        say(f"Plot: {out.resolve()}")


def report(
    folders: RunFolders,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str, typer.Option(help="The page's heading.")] = "attakit report",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write the results of runs to one self-contained HTML page."""
    write_report(find_runs(folders), out, title)
    if as_json:
        print_json({"report": str(out.resolve())})
    elif not quiet:
        say(f"Report: {out.resolve()}")


def list_parts(as_json: Json = False) -> None:
    """List methods, selectors, data sets and stream orders."""
    parts: dict[str, dict[str, str]] = {
        "methods": {name: _first_line(kind) for name, kind in METHODS.items()},
        "selectors": {name: _first_line(kind) for name, kind in SELECTORS.items()},
        "data sets": {name: summary(name) for name in DATA_SETS},
        "orders": {name: _first_line(order) for name, order in ORDERS.items()},
    }
    if as_json:
        print_json({name.replace(" ", "_"): lines for name, lines in parts.items()})
        return
    shown = Table(box=None, show_header=False, pad_edge=False)
    for kind, lines in parts.items():
        shown.add_row(f"[bold]{kind}[/]", "")
        for name, line in sorted(lines.items()):
            shown.add_row(f"  {name}", line)
    Console().print(shown)


def _first_line(part: Callable[..., Any]) -> str:
    return str(part.__doc__).strip().splitlines()[0]
