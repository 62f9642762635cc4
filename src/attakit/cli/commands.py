"""The commands: for each its name, its line in `attakit --help`, and what imports it.

Each command is imported by a function of its own, when it is called: importing all of them brings
torch and takes seconds. The import statements are ordinary ones, so type checker and import rules
see them.
"""

from __future__ import annotations

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

    help: str  # the first line of the command's own help
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


def _serve() -> typer.Typer:
    from attakit.cli.ray_option import RayCommand
    from attakit.cli.serve import serve

    return _single(serve, RayCommand)


def _learn() -> typer.Typer:
    from attakit.cli.learn import learn

    return _single(learn)


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


COMMANDS = {
    "demo": Command("Compare six methods on digits from three shifted domains.", _demo),
    "pretrain": Command("Train the source model that an experiment file describes.", _pretrain),
    "card": Command("Describe source data in a small file next to a model's weights.", _card),
    "run": Command("Adapt a model along a stream, as described by an experiment file.", _run),
    "bench": Command(
        "Run grids of methods, streams, budgets and seeds; skip finished cells.", _bench
    ),
    "corrupt": Command(
        "Make a data set like ImageNet-C from clean images; can be resumed.", _corrupt
    ),
    "serve": Command(
        "Serve a model over HTTP, ask people for labels and learn from them.", _serve, "service"
    ),
    "learn": Command(
        "Learn for servers that run elsewhere with `attakit serve --no-learner`.",
        _learn,
        "service",
    ),
    "export": Command(
        "Write an adapted model to a file for other programs, and check its answers.", _export
    ),
    "table": Command("Print the results of runs as tables, one per stream.", _table),
    "plot": Command(
        "Plot accuracy against labels or seconds, an ablation, or average ranks.", _plot
    ),
    "report": Command("Write the results of runs to one self-contained HTML page.", _report),
    "analyse": Command("Compare a run with the theory: weights, divergences and bounds.", _analyse),
    "list": Command("List methods, selectors, data sets and stream orders.", _list),
    "validate": Command(
        "Repeat the paper's validation experiments: numbers and figures.", _validate
    ),
    "questions": Command(
        "Export a service's questions to other tools, and import the answers.",
        _questions,
        "service",
    ),
    "token": Command("Create, list and revoke the access tokens of a service.", _token, "service"),
}
