"""The command line. Everything it does is a call of the library; it only talks."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from attakit.bench.run import Interrupted
from attakit.errors import AttaError

USER_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    help="Keep a deployed classifier up to date for the price of a few labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="TABLE.NAME=VALUE", help="Override a setting of the file."),
]
ExperimentFile = Annotated[Path, typer.Argument(metavar="EXPERIMENT.toml")]


def main() -> None:
    """Run the command line; errors of users end in one line, not in a traceback."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    errors = Console(stderr=True)
    try:
        app(standalone_mode=False)
    except (AttaError, typer.BadParameter) as error:
        errors.print(f"[bold red]Error:[/] {_escaped(str(error))}", soft_wrap=True)
        sys.exit(USER_ERROR)
    except (KeyboardInterrupt, typer.Abort, Interrupted) as stop:
        errors.print(_escaped(str(stop)) or "Stopped.", soft_wrap=True)
        sys.exit(INTERRUPTED)
