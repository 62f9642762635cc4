"""`attakit token`: who may use a service that others can reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from attakit.cli.extra_parts import import_service
from attakit.cli.options import DatabaseUrl, Json
from attakit.cli.talking import print_json, say
from attakit.errors import SettingError

app = typer.Typer(
    help="Create, list and revoke the tokens of a service.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Who it is for; the log tells it.")]
Folder = Annotated[Path, typer.Option(help="Folder of the service.")]


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
        f"It is for the service in {folder if database is None else 'the database'}. Keep it: it "
        f"cannot be shown again. Send it as header 'Authorization: Bearer TOKEN', or log in with "
        f"it.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@app.command("list")
def list_tokens(
    folder: Folder = Path("service"), database: DatabaseUrl = None, as_json: Json = False
) -> None:
    """Show who has a token, and what they may do."""
    with _open(folder, database, new=False) as storage:
        tokens = storage.tokens.all()
    rows = [
        {"name": one.name, "role": one.role, "created": one.created, "revoked": one.revoked}
        for one in tokens
    ]
    if as_json:
        print_json({"tokens": rows})
    elif not rows:
        place = f" --folder {folder}" if database is None else ""
        say(f"There are no tokens. Make one with: attakit token create NAME --role label{place}")
    else:
        Console().print(_table(rows))


@app.command()
def revoke(name: Name, folder: Folder = Path("service"), database: DatabaseUrl = None) -> None:
    """Let a token count no more."""
    with _open(folder, database, new=False) as storage:
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
def _open(folder: Path, database: str | None, *, new: bool = True) -> Iterator[Any]:
    """Open the storage of a service; one that is not there is made only if it may be `new`."""
    file = folder / import_service("storage.database").FILE
    if not new and database is None and not file.is_file():
        raise SettingError(
            f"token: there is no service in {folder}. Name its folder with --folder, or its "
            f"database with --database."
        )
    with import_service("storage").open_storage(folder, database) as opened:
        yield opened
