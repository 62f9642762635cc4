"""`attakit token`: who may use a service that others can reach."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from attakit.cli.options import Json
from attakit.cli.talking import print_json, say
from attakit.errors import MissingExtra

app = typer.Typer(
    help="Create, list and revoke the tokens of a service.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who it is for; the log tells it.")]
Folder = Annotated[Path, typer.Option(help="Folder of the service.")]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="ATTAKIT_DATABASE",
        help="URL of its database, if it is not in the folder.",
    ),
]


@app.command()
def create(
    name: Name,
    role: Annotated[
        Literal["predict", "label", "admin"],
        typer.Option(help="May send images, answer questions, or do everything."),
    ],
    folder: Folder = Path("service"),
    database: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Make a token and show it, this once."""
    with _open(folder, database) as storage:
        token = storage.tokens.create(name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": token})
        return
    say(token)
    Console(stderr=True).print(
        "Keep it: it cannot be shown again. Send it as header 'Authorization: Bearer TOKEN', or "
        "log in with it.",
        highlight=False,
    )


@app.command("list")
def list_tokens(
    folder: Folder = Path("service"), database: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Show who has a token, and what they may do."""
    with _open(folder, database) as storage:
        tokens = storage.tokens.all()
    rows = [
        {"name": one.name, "role": one.role, "created": one.created, "revoked": one.revoked}
        for one in tokens
    ]
    if as_json:
        print_json({"tokens": rows})
    elif not rows:
        say("There are no tokens. Make one with: attakit token create NAME --role label")
    else:
        Console().print(_table(rows))


@app.command()
def revoke(name: Name, folder: Folder = Path("service"), database: DatabaseUrl = None) -> None:
    """Let a token count no more."""
    with _open(folder, database) as storage:
        storage.tokens.revoke(name)
    say(f"The token of {name} counts no more.")


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("name", "role", "created", "revoked")
    for row in rows:
        table.add_row(row["name"], row["role"], _date(row["created"]), _date(row["revoked"]))
    return table


def _date(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


@contextmanager
def _open(folder: Path, database: str | None) -> Iterator[Any]:
    """Open the storage of a service; the other commands must work where it is not installed."""
    try:
        storage = importlib.import_module("attakit.service.storage")
    except ImportError as error:
        raise MissingExtra(
            f"attakit token needs the parts of the service, which cannot be imported ({error}). "
            f"Install them with: pip install 'attakit[service]'"
        ) from error
    with storage.open_storage(folder, database) as opened:
        yield opened
