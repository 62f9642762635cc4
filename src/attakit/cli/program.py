"""The program: finds the command, calls it, and turns errors into one line and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from attakit import __version__
from attakit.cli.commands import COMMANDS, load_command
from attakit.cli.output import OnceFilter, say
from attakit.messages import explain, is_user_error
from attakit.processes.interrupt import Interrupted

USER_ERROR, INTERRUPTED = 2, 130


class LazyGroup(TyperGroup):
    """Imports a command when it is called; until then an empty one has its name and help."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, command in COMMANDS.items():
            self.add_command(TyperCommand(name, help=command.help, rich_help_panel=command.purpose))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None:
            command = get_command(load_command(name))
            command.help = command.help or COMMANDS[name].help
            command.epilog = f"Example: {COMMANDS[name].example}"
        return name, command, rest


app = typer.Typer(
    cls=LazyGroup,
    help="Keep a deployed classifier accurate while its data changes, for a few labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; errors that users can fix end in one line, not in a traceback."""
    handler = logging.StreamHandler()
    handler.addFilter(OnceFilter())
    logging.basicConfig(format="%(message)s", level=logging.WARNING, handlers=[handler])
    errors = Console(stderr=True, highlight=False)
    # So that method.name = "mymodule:MyMethod" finds a module in the current folder. It is last, so
    # that no file there hides an installed module.
    sys.path.append("")
    # torch then asks Linux for large pages. Clearing small ones is a large part of the
    # time that a large network takes on a CPU. torch reads this before its first tensor.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    try:
        app()
    except Interrupted as stop:
        errors.print(escape(str(stop)), soft_wrap=True)
        sys.exit(INTERRUPTED)
    except Exception as error:
        if not is_user_error(error):
            raise
        errors.print(f"[bold red]Error:[/] {escape(explain(error))}", soft_wrap=True)
        sys.exit(USER_ERROR)


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if show:
        say(f"attakit {__version__}")
        raise typer.Exit
