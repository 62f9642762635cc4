"""The commands: each has a name, a line in `attakit --help`, and a function that imports it.

Each command has its own function that imports it when it is called: importing all of them loads
torch and takes seconds. The import statements are ordinary ones, so type checker and import rules
see them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand

from attakit.cli.imports import quick_imports
from attakit.errors import needs_extra


@dataclass(frozen=True)
class Command:
    """A command that is not imported yet."""

    purpose: str  # the heading above it in `attakit --help`
    help: str  # the first line of the command's own help
    example: str  # at the end of the command's own help
    load: Callable[[], typer.Typer]
    extra: str | None = None  # optional dependencies without which it cannot be imported


def load_command(name: str) -> typer.Typer:
    """Import a command, or raise `MissingExtra` if that needs packages that are not installed.

    >>> len(load_command("token").registered_commands)
    3
    """
    command = COMMANDS[name]
    with quick_imports():
        if command.extra is None:
            return command.load()
        with needs_extra(f"attakit {name}", command.extra):
            return command.load()


def _single(function: Callable[..., Any], cls: type[TyperCommand] = TyperCommand) -> typer.Typer:
    """An application of one command."""
    app = typer.Typer(add_completion=False)
    app.command(cls=cls)(function)
    return app


def _demo() -> typer.Typer:
    from attakit.cli.demo import demo

    return _single(demo)


def _pretrain() -> typer.Typer:
    from attakit.cli.pretrain import pretrain

    return _single(pretrain)


def _card() -> typer.Typer:
    from attakit.cli.card import card

    return _single(card)


def _run() -> typer.Typer:
    from attakit.cli.run import run

    return _single(run)


def _bench() -> typer.Typer:
    from attakit.cli.bench import bench
    from attakit.cli.ray_option import RayCommand

    return _single(bench, RayCommand)


def _corrupt() -> typer.Typer:
    from attakit.cli.corrupt import corrupt

    return _single(corrupt)


def _announce(text: str) -> None:
    """Print a line before the imports, which take seconds, if a person looks at a terminal."""
    if sys.stderr.isatty() and not {"--help", "--quiet", "-q"} & set(sys.argv):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _serve() -> typer.Typer:
    _announce("Starting the service. This takes a few seconds.")
    from attakit.cli.ray_option import RayCommand
    from attakit.cli.serve import serve

    return _single(serve, RayCommand)


def _learn() -> typer.Typer:
    from attakit.cli.learn import learn

    return _single(learn)


def _rebuild() -> typer.Typer:
    from attakit.cli.rebuild import rebuild

    return _single(rebuild)


def _export() -> typer.Typer:
    from attakit.cli.export import export

    return _single(export)


def _table() -> typer.Typer:
    from attakit.cli.show import table

    return _single(table)


def _plot() -> typer.Typer:
    from attakit.cli.show import plot

    return _single(plot)


def _report() -> typer.Typer:
    from attakit.cli.show import report

    return _single(report)


def _analyse() -> typer.Typer:
    from attakit.cli.analyse import analyse

    return _single(analyse)


def _list() -> typer.Typer:
    from attakit.cli.show import list_parts

    return _single(list_parts)


def _validate() -> typer.Typer:
    from attakit.cli.validate import app

    return app


def _questions() -> typer.Typer:
    from attakit.cli.questions import app

    return app


def _token() -> typer.Typer:
    from attakit.cli.token import app

    return app


START, ADAPT, COMPARE = "Start here", "Adapt a model", "Compare methods"
PAPER, SERVE = "The paper", "Run a live service"

COMMANDS = {
    "demo": Command(
        START, "Compare six methods on digits from three shifted domains.", "attakit demo", _demo
    ),
    "list": Command(
        START, "List methods, selectors, data sets and stream orders.", "attakit list", _list
    ),
    "pretrain": Command(
        ADAPT,
        "Train the source model that an experiment file describes.",
        "attakit pretrain experiment.toml --set training.updates=500",
        _pretrain,
    ),
    "card": Command(
        ADAPT,
        "Describe source data in a small file next to a model's weights.",
        "attakit card experiment.toml",
        _card,
    ),
    "run": Command(
        ADAPT,
        "Adapt a model along a stream, as described by an experiment file.",
        "attakit run experiment.toml --set labels.budget=100",
        _run,
    ),
    "export": Command(
        ADAPT,
        "Write an adapted model to a file for other programs, and check its answers.",
        "attakit export runs/mine adapted.onnx",
        _export,
    ),
    "bench": Command(
        COMPARE,
        "Run grids of methods, streams, budgets and seeds; skip finished cells.",
        "attakit bench experiments/digits/suite.toml --workers 2",
        _bench,
    ),
    "corrupt": Command(
        COMPARE,
        "Make a data set like ImageNet-C from clean images; can be resumed.",
        "attakit corrupt my-images my-images-c --severities 3,5",
        _corrupt,
    ),
    "table": Command(
        COMPARE,
        "Print the results of runs as tables, one per stream.",
        "attakit table results/digits --format markdown",
        _table,
    ),
    "plot": Command(
        COMPARE,
        "Plot accuracy along the stream, against labels or seconds, an ablation, or ranks.",
        "attakit plot results/digits --kind seconds --out plot.png",
        _plot,
    ),
    "report": Command(
        COMPARE,
        "Write the results of runs to one self-contained HTML page.",
        "attakit report runs/mine --out report.html",
        _report,
    ),
    "analyse": Command(
        PAPER,
        "Compare a run with the theory: weights, divergences and bounds.",
        "attakit analyse runs/mine",
        _analyse,
    ),
    "validate": Command(
        PAPER,
        "Repeat the paper's validation experiments: numbers and figures.",
        "attakit validate entropy",
        _validate,
    ),
    "serve": Command(
        SERVE,
        "Serve a model over HTTP, ask people for labels and learn from them.",
        "attakit serve service.toml --port 9000",
        _serve,
        "service",
    ),
    "learn": Command(
        SERVE,
        "Learn for servers that run elsewhere with `attakit serve --no-learner`.",
        "attakit learn service.toml",
        _learn,
        "service",
    ),
    "rebuild": Command(
        SERVE,
        "Rebuild a learner whose checkpoint is lost or damaged, from the log of turns.",
        "attakit rebuild live",
        _rebuild,
        "service",
    ),
    "questions": Command(
        SERVE,
        "Export a service's questions to other tools, and import the answers.",
        "attakit questions export live --out questions.csv",
        _questions,
        "service",
    ),
    "token": Command(
        SERVE,
        "Create, list and revoke the access tokens of a service.",
        "attakit token create Ada --role label --folder live",
        _token,
        "service",
    ),
}
