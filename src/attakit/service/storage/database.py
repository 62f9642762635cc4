"""Database: transactions on SQLite or PostgreSQL, with one writer at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Select, create_engine, event, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, InterfaceError

from attakit.errors import MissingExtra, SettingError, StateError
from attakit.service.storage import sqlite
from attakit.service.storage.clock import SteadyClock
from attakit.service.storage.rows import Record, read_row
from attakit.service.storage.schema import (
    HEAD,
    create_tables,
    find_migrations,
    find_revision,
    upgrade_tables,
)
from attakit.service.storage.tables import events

FILE = "service.sqlite"
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
LOCK = 0x61747461  # any number that other programs on the same database do not use
# A web server has about forty threads. Written data (images, hashes) must not be in errors.
_COMMON: dict[str, Any] = {"pool_size": 10, "max_overflow": 40, "hide_parameters": True}


class Database:
    """Transactions on one database. Its tables are created on first use.

    Writing transactions wait for each other on both databases. So what a transaction reads is still
    true when it writes, and the same code is right on both.
    """

    def __init__(self, url: URL, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self._engine = _make_engine(url)
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._writing = self._engine.execution_options(writes=True)
        self._file: tuple[int, int] | None = None  # identity of the SQLite file, when it exists
        try:
            self._prepare()
            self._file = _identity(url) if self.is_sqlite else None
            newest = select(events.c.at).order_by(events.c.number.desc()).limit(1)
            self.clock = SteadyClock(clock, self.scalar(newest) or 0.0)
        except BaseException:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that changes nothing."""
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, exclusive: bool = True) -> Iterator[Connection]:
        """Open a transaction that changes something. At its end the data is safe on disk.

        Other writers wait. If it is not `exclusive`, new rows can be added at the same time.
        """
        self._check_there()
        with self._explained(), self._writing.begin() as connection:
            if exclusive:
                self._wait_for_writers(connection)
            yield connection

    def find(self, record: type[Record], query: Select[Any]) -> tuple[Record, ...]:
        """Return all rows that a query finds, as records."""
        with self.read() as connection:
            return tuple(read_row(record, row) for row in connection.execute(query))

    def scalar(self, query: Select[Any]) -> Any:
        """Return the first value of the first row that a query finds, or None."""
        with self.read() as connection:
            return connection.scalar(query)

    def connect(self) -> Connection:
        """Open a separate connection outside the pool. Its server-side locks end with it."""
        with self._explained():
            connection: Connection = self._engine.connect()
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()
            return connection

    def wipe(self) -> None:
        """Overwrite deleted data in SQLite's journal too, as far as readers allow.

        Also remove copies of the database from before an upgrade.
        """
        if self.is_sqlite:
            with self._explained(), self._engine.connect() as connection:
                sqlite.wipe(sqlite.raw_connection(connection))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _check_there(self) -> None:
        """Raise `StateError` if the file was moved away: written data would be lost."""
        if self._file is not None and self._file != _identity(self._url):
            raise StateError(
                f"Storage: {_describe(self._url)} was moved, deleted or replaced while it was in "
                "use. Put it back, or stop the service before you replace it."
            )

    def _wait_for_writers(self, connection: Connection) -> None:
        if not self.is_sqlite:  # which never has two writers
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})

    def _prepare(self) -> None:
        with self.write() as connection:
            found = find_revision(connection)
            if found is None:
                create_tables(connection)
        if found not in (None, HEAD):
            self._upgrade()

    def _upgrade(self) -> None:
        """Upgrade the tables in one transaction; of several processes only the first does it."""
        with (
            self._explained(),
            self._writing.connect() as connection,
            sqlite.without_foreign_keys(connection),
            connection.begin(),
        ):
            self._wait_for_writers(connection)
            found, name = find_revision(connection), _describe(self._url)
            if migrations := find_migrations(found, name):
                self._back_up(str(found))
                upgrade_tables(connection, migrations, name)

    def _back_up(self, revision: str) -> None:
        if self.is_sqlite:
            with self._engine.connect() as reader:  # sees what was committed before the upgrade
                sqlite.back_up(sqlite.raw_connection(reader), revision)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise  # a bug in attakit, not a problem of the database
        except (DatabaseError, InterfaceError) as error:
            reason = str(error.orig).strip().partition("\n")[0]
            raise StateError(
                f"Storage: {_describe(self._url)} cannot be used: {reason}. Check that it exists, "
                "is writable, has free space and was created by attakit."
            ) from None


def check_database_file(url: URL) -> None:
    """Raise `StateError` if the file of an SQLite database does not exist."""
    if url.get_backend_name() == "sqlite" and _identity(url) is None:
        raise StateError(f"Storage: {_describe(url)} does not exist. Put it back.")


def _identity(url: URL) -> tuple[int, int] | None:
    """Identify the file of an SQLite database; None if it does not exist."""
    try:
        status = os.stat(url.database or "")
    except OSError:
        return None
    return status.st_dev, status.st_ino


def database_url(folder: Path, url: str | None = None) -> URL:
    """Return the database's URL: the given one, or a file in the folder.

    >>> str(database_url(Path("live")))
    'sqlite:///live/service.sqlite'
    >>> str(database_url(Path("live"), "postgres://ada:secret@host/labels"))
    'postgresql+psycopg://ada:***@host/labels'
    """
    if url is None:
        return URL.create("sqlite", database=str(folder / FILE))
    try:
        parsed = make_url(url.replace("postgres://", "postgresql://", 1))
    except (ArgumentError, ValueError):
        raise SettingError(
            "Storage: database is not a URL. Give one like "
            "postgresql://user:password@host:5432/name, or none for SQLite in the folder."
        ) from None
    driver = _DRIVERS.get(parsed.get_backend_name())
    if driver is None:
        raise SettingError(
            f"Storage: database must be SQLite or PostgreSQL, got a URL for "
            f"{parsed.get_backend_name()!r}. Give a URL that starts with sqlite:/// or "
            f"postgresql://."
        )
    if driver == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise SettingError(
            "Storage: a database in memory would not survive a restart. "
            "Give the path of a file, like sqlite:///folder/service.sqlite."
        )
    return parsed.set(drivername=driver)


def _make_engine(url: URL) -> Any:
    """Create an engine whose committed transactions survive a power cut."""
    if url.get_backend_name() != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=True, **_COMMON)
        except ModuleNotFoundError:
            raise MissingExtra(
                "Storage: PostgreSQL needs psycopg. Install it with: pip install attakit[postgres]"
            ) from None
    sqlite.make_file(str(url.database))
    engine = create_engine(url, **_COMMON)
    event.listen(engine, "connect", sqlite.set_up)
    event.listen(engine, "begin", sqlite.begin)
    return engine


def _describe(url: URL) -> str:
    """Name the database without user, password or options."""
    if url.get_backend_name() == "sqlite":
        return f"the SQLite database {url.database}"
    return f"the PostgreSQL database {url.database!r} on {url.host or 'this machine'}"
