"""The command line. Everything it does is a call of the library; it only talks."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import OutOfMemoryError

from attakit import __version__
from attakit.bench.data import DATA_SETS, load_task, summary
from attakit.bench.demo import prepare_demo, run_count, run_demo, run_folders
from attakit.bench.load import load_experiment
from attakit.bench.models import DIGITS_TRAINING
from attakit.bench.models import pretrain as pretrain_source
from attakit.bench.run import run_experiment
from attakit.bench.stopping import Interrupted
from attakit.errors import AttaError
from attakit.methods import METHODS
from attakit.report.console import Progress, WorkBar, print_sheets, print_table, told
from attakit.report.figures import summarise
from attakit.report.html import write_report
from attakit.report.layouts import LAYOUTS, lay_out
from attakit.report.plots import PlotKind, draw_plot
from attakit.report.runs import find_runs, read_run
from attakit.report.sheet_forms import render_sheets
from attakit.report.sheets import Sheet
from attakit.report.tables import Form, render
from attakit.select import SELECTORS
from attakit.stream.order import ORDERS

USER_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    help="Keep a deployed classifier up to date on a shifting stream for a few labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting of the file."),
]
ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml")]
RunFolders = Annotated[
    list[Path], typer.Argument(metavar="FOLDER…", help="Runs, or folders that hold runs.")
]


def main() -> None:
    """Run the command line; mistakes of users end in one line, not in a traceback."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    errors = Console(stderr=True, highlight=False)
    # So that method.name = "mymodule:MyMethod" finds a module beside the experiment; last, so that
    # no file there hides an installed module.
    sys.path.append("")
    try:
        app()
    except (AttaError, OSError, OutOfMemoryError) as error:
        errors.print(f"[bold red]Error:[/] {escape(_told(error))}", soft_wrap=True)
        sys.exit(USER_ERROR)
    except Interrupted as stop:
        errors.print(escape(str(stop)), soft_wrap=True)
        sys.exit(INTERRUPTED)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if show:
        _say(f"attakit {__version__}")
        raise typer.Exit


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where results and report go.")] = Path("runs/demo"),
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to average over.")] = 3,
    share: Annotated[
        float, typer.Option(min=0.01, max=1, help="Part of the stream to use, for a quick look.")
    ] = 1.0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Watch a classifier of digits meet three shifted domains, with and without labels."""
    chosen = range(seeds)
    runs, report = run_folders(folder, chosen), folder / "report.html"
    with _interruptible("Stopped. Start it again with `attakit demo`."):
        with _training_bar(quiet=quiet or as_json) as training:
            prepare_demo(training)
        with WorkBar("demo", total=run_count(chosen), quiet=quiet or as_json) as bar:
            figures = run_demo(folder, chosen, share=share, progress=bar.advance)
    write_report(runs, report, "attakit demo: digits on a shifted stream")
    if as_json:
        _print_json({"methods": figures, "report": str(report.resolve())})
    elif not quiet:
        print_table(summarise([read_run(run) for run in runs]), title="Digits: MNIST → shifted")
        _say(f"Report: {report.resolve()}")


@app.command()
def pretrain(
    experiment: ExperimentFile,
    override: Overrides = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train the source model that an experiment file describes."""
    tables = load_experiment(experiment, override or [])
    task = load_task(tables.stream)
    began = time.perf_counter()
    with (
        _interruptible("Stopped. Nothing was written."),
        WorkBar("pretrain", total=tables.training.updates, quiet=quiet or as_json) as bar,
    ):
        training = pretrain_source(
            tables, task, progress=lambda update, numbers: bar.reach(update, told(numbers))
        )
    written = {
        "weights": str(tables.training.weights),
        "held_out_accuracy": None if training.accuracy is None else 100 * training.accuracy,
        "update": training.update,
        "seconds": time.perf_counter() - began,
    }
    if as_json:
        _print_json(written)
    elif not quiet:
        accuracy = written["held_out_accuracy"]
        shown = "" if accuracy is None else f" ({accuracy:.2f} % on held-out source images)"
        _say(f"Wrote {written['weights']}{shown}.")


@app.command()
def run(
    experiment: ExperimentFile,
    override: Overrides = None,
    oracle: Annotated[
        str | None, typer.Option(help="Who answers: 'known', or 'ask' for you, here.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Throw away earlier results in the folder.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Adapt a model along a stream, as an experiment file says."""
    overrides = list(override or [])
    if oracle is not None:
        overrides.append(f'labels.oracle="{oracle}"')
    tables = load_experiment(experiment, overrides)
    folder = tables.report.folder
    silent = quiet or as_json
    console = Console(stderr=True)
    with (
        _interruptible("Stopped before the first step. Start it again."),
        _training_bar(quiet=silent) as training,
        _late_bar("scoring", quiet=silent) as scoring,
    ):
        end = run_experiment(
            tables,
            resume=resume,
            replace=replace,
            observers=lambda stream, accuracy, start: [
                Progress(
                    tables.label,
                    steps=len(stream),
                    accuracy=accuracy,
                    done=start,
                    quiet=silent or tables.asks,
                )
            ],
            write=lambda line: console.print(escape(line), highlight=False, soft_wrap=True),
            training=training,
            scoring=lambda done, total: scoring(done, total, "whole domains"),
        )
    if as_json:
        _print_json({"folder": str(folder), **end})
    elif not quiet:
        print_table(summarise([read_run(folder)]))
        _say(f"Results: {folder}")


@app.command()
def table(
    folders: RunFolders,
    form: Annotated[Form, typer.Option("--format", help="How to write it.")] = "rich",
    layout: Annotated[
        str | None,
        typer.Option(help=f"A layout of the paper, with its numbers: {', '.join(LAYOUTS)}."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a table from the JSON lines of runs."""
    runs = [read_run(folder) for folder in find_runs(folders)]
    if layout is not None:
        _show_layout(lay_out(layout, runs), form, as_json=as_json)
        return
    rows = summarise(runs)
    if as_json:
        _print_json({"rows": [asdict(row) for row in rows]})
    elif form == "rich":
        print_table(rows)
    else:
        sys.stdout.write(render(rows, form))


def _show_layout(sheets: list[Sheet], form: Form, *, as_json: bool) -> None:
    if as_json:
        _print_json({"sheets": [asdict(sheet) for sheet in sheets]})
    elif form == "rich":
        print_sheets(sheets)
    else:
        sys.stdout.write(render_sheets(sheets, form))


@app.command()
def plot(
    folders: RunFolders,
    kind: Annotated[PlotKind, typer.Option(help="What to draw.")] = "labels",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write: .png, .svg or .pdf.")
    ] = Path("plot.png"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Draw accuracy against labels or seconds, or an ablation, from runs."""
    draw_plot([read_run(folder) for folder in find_runs(folders)], kind, out)
    if as_json:
        _print_json({"plot": str(out.resolve())})
    elif not quiet:
        _say(f"Plot: {out.resolve()}")


@app.command()
def report(
    folders: RunFolders,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "attakit report",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write one self-contained HTML page about runs."""
    write_report(find_runs(folders), out, title)
    if as_json:
        _print_json({"report": str(out.resolve())})
    elif not quiet:
        _say(f"Report: {out.resolve()}")


@app.command("list")
def list_parts(as_json: Json = False) -> None:
    """List methods, selectors, data sets and stream orders, one line each."""
    parts: dict[str, dict[str, str]] = {
        "methods": {name: _first_line(kind) for name, kind in METHODS.items()},
        "selectors": {name: _first_line(kind) for name, kind in SELECTORS.items()},
        "data sets": {name: summary(name) for name in DATA_SETS},
        "orders": {name: _first_line(order) for name, order in ORDERS.items()},
    }
    if as_json:
        _print_json({name.replace(" ", "_"): lines for name, lines in parts.items()})
        return
    shown = Table(box=None, show_header=False, pad_edge=False)
    for kind, lines in parts.items():
        shown.add_row(f"[bold]{kind}[/]", "")
        for name, line in sorted(lines.items()):
            shown.add_row(f"  {name}", line)
    Console().print(shown)


def _told(error: Exception) -> str:
    """What to tell a user about an error; those of the machine do not say what to do."""
    if isinstance(error, OutOfMemoryError):
        first_line = str(error).partition("\n")[0]
        return f"{first_line} Lower stream.batch_size, or set model.device to another device."
    return str(error) if isinstance(error, AttaError) else f"The system refused: {error}."


@contextmanager
def _interruptible(message: str) -> Iterator[None]:
    """Turn Ctrl-C into our own message and exit code; Typer has another."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(message) from None


@contextmanager
def _late_bar(title: str, *, quiet: bool) -> Iterator[Callable[[int, int, str], None]]:
    """A bar for work that may or may not come: seen from the first piece to the last."""
    with ExitStack() as stack:
        bars: list[WorkBar] = []

        def show(done: int, total: int, note: str = "") -> None:
            if not bars:
                bars.append(stack.enter_context(WorkBar(title, total=total, quiet=quiet)))
            bars[0].reach(done, note)
            if done == total:
                stack.close()

        yield show


@contextmanager
def _training_bar(*, quiet: bool) -> Iterator[Callable[[int, dict[str, float]], None]]:
    """A bar for training the source model of digits, seen only if and while it is trained."""
    with _late_bar("source model", quiet=quiet) as show:
        yield lambda update, numbers: show(update, DIGITS_TRAINING.updates, told(numbers))


def _first_line(part: Callable[..., Any]) -> str:
    return str(part.__doc__).strip().splitlines()[0]


def _say(line: str) -> None:
    Console().print(escape(line), soft_wrap=True, highlight=False)


def _print_json(values: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(values, indent=2) + "\n")
