"""The program: its commands, and what becomes of errors. Everything is a call of the library."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from attakit import __version__
from attakit.cli import (
    analyse,
    bench,
    corrupt,
    demo,
    export,
    pretrain,
    questions,
    run,
    serve,
    show,
    token,
    validate,
)
from attakit.cli.output import CountsOnce, say
from attakit.messages import USER_ERRORS, explain
from attakit.processes.interrupt import Interrupted

USER_ERROR, INTERRUPTED = 2, 130

app = typer.Typer(
    help="Keep a deployed classifier up to date on a shifting stream for a few labels.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; mistakes of users end in one line, not in a traceback."""
    lines = logging.StreamHandler()
    lines.addFilter(CountsOnce())
    logging.basicConfig(format="%(message)s", level=logging.WARNING, handlers=[lines])
    errors = Console(stderr=True, highlight=False)
    # So that method.name = "mymodule:MyMethod" finds a module beside the experiment; last, so that
    # no file there hides an installed module.
    sys.path.append("")
    try:
        app()
    except USER_ERRORS as error:
        errors.print(f"[bold red]Error:[/] {escape(explain(error))}", soft_wrap=True)
        sys.exit(USER_ERROR)
    except Interrupted as stop:
        errors.print(escape(str(stop)), soft_wrap=True)
        sys.exit(INTERRUPTED)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    if show:
        say(f"attakit {__version__}")
        raise typer.Exit


app.command()(demo.demo)
app.command()(pretrain.pretrain)
app.command()(run.run)
app.command(cls=bench.BenchCommand)(bench.bench)
app.command()(corrupt.corrupt)
app.add_typer(validate.app, name="validate")
app.command()(serve.serve)
app.command()(export.export)
app.add_typer(questions.app, name="questions")
app.command()(show.table)
app.command()(show.plot)
app.command()(show.report)
app.command()(analyse.analyse)
app.command("list")(show.list_parts)
app.add_typer(token.app, name="token")
