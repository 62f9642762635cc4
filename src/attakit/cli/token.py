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
from attakit.cli.output import print_json, say
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
    # The first token comes before the first start, if others are to reach the service.
    is_new = database is None and _is_vacant(folder)
    with _open(folder, database, new=is_new) as storage:
        token = storage.tokens.create(name, role)
    if is_new:
        _tell(
            f"There was no service in {folder}: a new place for one was made in "
            f"{folder.resolve()}. Start the service with this folder, or it knows no such token."
        )
    if as_json:
        print_json({"name": name, "role": role, "token": token})
        return
    say(token)
    _tell(
        f"It is for the service in {folder if database is None else 'the database'}. Keep it: it "
        f"cannot be shown again. Send it as header 'Authorization: Bearer TOKEN', or log in with "
        f"it."
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
        place = f" --folder {folder}" if database is None else ""
        say(f"There are no tokens. Make one with: attakit token create NAME --role label{place}")
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


def _tell(sentences: str) -> None:
    """Say what is not the result, on the error stream."""
    Console(stderr=True).print(sentences, highlight=False, markup=False, soft_wrap=True)


def _is_vacant(folder: Path) -> bool:
    """Whether a service could begin in a folder: it is not there, or nothing is in it."""
    return not folder.is_dir() or not any(folder.iterdir())


@contextmanager
def _open(folder: Path, database: str | None, *, new: bool = False) -> Iterator[Any]:
    """Open the storage of a service; one that is not there is made only if it may be `new`."""
    file = folder / import_service("storage.database").FILE
    saved = import_service("saved_settings")
    url = database or saved.saved_database_url(folder)
    saved.check_password(url)
    if not new and url is None and not file.is_file():
        raise SettingError(
            f"token: there is no service in {folder}. Name its folder with --folder, or its "
            f"database with --database. For a new service, name a folder that is empty or not "
            f"there yet."
        )
    with import_service("storage").open_storage(folder, url) as opened:
        yield opened
