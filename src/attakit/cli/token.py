"""`attakit token`: access tokens for a service that other machines can reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from attakit.cli.options import DatabaseUrl, Json
from attakit.cli.output import print_json, say
from attakit.errors import SettingError
from attakit.service.saved_settings import check_password, saved_database_url
from attakit.service.storage import Storage, open_storage
from attakit.service.storage.database import FILE

app = typer.Typer(no_args_is_help=True, add_completion=False)

TokenName = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The person or program that gets the token. It appears in the log."
    ),
]
Folder = Annotated[Path, typer.Option(help="The service's folder.")]


@app.command()
def create(
    name: TokenName,
    role: Annotated[
        Literal["predict", "label", "admin"],
        typer.Option(help="What it allows: to send inputs, to answer questions, or everything."),
    ],
    folder: Folder = Path("service"),
    database: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Create a token and print it. It cannot be printed again."""
    # A service that listens to other machines needs a token before its first start.
    is_new = database is None and _is_vacant(folder)
    with _open(folder, database, new=is_new) as storage:
        token = storage.tokens.create(name, role)
    if is_new:
        _print_note(
            f"There was no service in {folder}. A new, empty one was created in "
            f"{folder.resolve()}. Start the service with this folder, or the token is not valid."
        )
    if as_json:
        print_json({"name": name, "role": role, "token": token})
        return
    say(token)
    _print_note(
        f"This token is for the service in {folder if database is None else 'the database'}. Save "
        f"it now: it cannot be shown again. Send it in the header 'Authorization: Bearer TOKEN', "
        f"or log in with it."
    )


@app.command("list")
def list_tokens(
    folder: Folder = Path("service"), database: DatabaseUrl = None, as_json: Json = False
) -> None:
    """List the tokens with their roles."""
    with _open(folder, database) as storage:
        tokens = storage.tokens.all()
    rows = [
        {"name": one.name, "role": one.role, "created": one.created, "revoked": one.revoked}
        for one in tokens
    ]
    if as_json:
        print_json({"tokens": rows})
    elif not rows:
        place = f" --folder {folder}" if database is None else ""
        say(f"There are no tokens. Create one with: attakit token create NAME --role label{place}")
    else:
        Console().print(_table(rows))


@app.command()
def revoke(name: TokenName, folder: Folder = Path("service"), database: DatabaseUrl = None) -> None:
    """Revoke a token, so that the service no longer accepts it."""
    with _open(folder, database) as storage:
        storage.tokens.revoke(name)
    say(f"The token of {name} is revoked.")


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table("name", "role", "created", "revoked")
    for row in rows:
        table.add_row(row["name"], row["role"], _date(row["created"]), _date(row["revoked"]))
    return table


def _date(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds):%Y-%m-%d %H:%M}"


def _print_note(text: str) -> None:
    """Print a note on standard error, apart from the result."""
    Console(stderr=True).print(text, highlight=False, markup=False, soft_wrap=True)


def _is_vacant(folder: Path) -> bool:
    """True if a new service can start in a folder: it does not exist, or is empty."""
    return not folder.is_dir() or not any(folder.iterdir())


@contextmanager
def _open(folder: Path, database: str | None, *, new: bool = False) -> Iterator[Storage]:
    """Open the storage of a service. If it does not exist, create it only if it may be `new`."""
    url = database or saved_database_url(folder)
    check_password(url)
    if not new and url is None and not (folder / FILE).is_file():
        raise SettingError(
            f"token: there is no service in {folder}. Give its folder with --folder or its "
            f"database with --database. For a new service, give a folder that is empty or does not "
            f"exist yet."
        )
    with open_storage(folder, url) as storage:
        yield storage
