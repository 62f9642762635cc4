"""Database: transactions on SQLite or PostgreSQL, with one writer at a time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, inspect, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
)

from attakit.errors import MissingExtra, SettingError, StateError
from attakit.service.storage.permissions import make_private_file
from attakit.service.storage.tables import SCHEMA, facts, metadata

FILE = "service.sqlite"
_DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg"}
_LOCK = 0x61747461  # any number that other programs on the same database do not use
_BUSY_SECONDS = 30
_PATIENT = f"busy_timeout = {_BUSY_SECONDS * 1000}"
_LOOK_SECONDS = 0.003  # between two looks whether a busy database is free again
_IMPATIENT = f"busy_timeout = {1000 * _LOOK_SECONDS:.0f}"
# A web server has some forty threads; what is written (images, hashes) is not for error messages.
_COMMON: dict[str, Any] = {"pool_size": 10, "max_overflow": 40, "hide_parameters": True}


class Database:
    """Transactions on one database, whose tables are made on first use.

    Writing transactions wait for each other on both databases, so that what was read in one is
    still true when it writes, and so that the same code is right on both.

    Parameters
    ----------
    url
        Of a SQLite file or a PostgreSQL database.
    clock
        Tells the time.
    """

    def __init__(self, url: URL, clock: Callable[[], float] = time.time) -> None:
        self._url = url
        self.clock = clock
        self._engine = _make_engine(url)
        self._is_sqlite = url.get_backend_name() == "sqlite"
        self._writing = self._engine.execution_options(writes=True)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that changes nothing."""
        with self._explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def write(self, *, exclusive: bool = True) -> Iterator[Connection]:
        """A transaction that changes something; on leaving it is safe on disk.

        Parameters
        ----------
        alone
            Whether other writers must wait. Rows that nobody knows yet can be added without.
        """
        with self._explained(), self._writing.begin() as connection:
            if exclusive and not self._is_sqlite:  # SQLite never has two writers
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            yield connection

    def wipe(self) -> None:
        """Overwrite what was deleted in the journal of SQLite too, as far as readers let it."""
        if self._is_sqlite:
            with self._explained(), self._engine.connect() as connection:
                raw = connection.connection.driver_connection
                assert raw is not None
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _prepare(self) -> None:
        with self.write() as connection:
            if not inspect(connection).has_table(facts.name):
                metadata.create_all(connection)
                connection.execute(facts.insert().values(name="schema", value=SCHEMA))
            found = connection.scalar(select(facts.c.value).where(facts.c.name == "schema"))
        if found != SCHEMA:
            raise StateError(
                f"Storage: {_describe(self._url)} has the tables of another version of attakit "
                f"(schema {found!r}, this version has {SCHEMA}). Use that version, or another "
                f"folder or database."
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise  # a fault of the program, not of the database
        except (DatabaseError, InterfaceError) as error:
            reason = str(error.orig).strip().partition("\n")[0]
            raise StateError(
                f"Storage: {_describe(self._url)} cannot be used: {reason}. Look whether it is "
                f"there, may be written, has room and was made by attakit."
            ) from None


def database_url(folder: Path, url: str | None = None) -> URL:
    """Say where the database is: at a URL, or in a file of the folder.

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
            f"Storage: database must be of SQLite or PostgreSQL, got a URL of "
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
    """Connect so that a committed transaction survives a loss of power."""
    if url.get_backend_name() != "sqlite":
        try:
            return create_engine(url, pool_pre_ping=True, **_COMMON)
        except ModuleNotFoundError:
            raise MissingExtra(
                "Storage: PostgreSQL needs psycopg. Install it with: pip install attakit[postgres]"
            ) from None
    _make_file(str(url.database))
    engine = create_engine(url, **_COMMON)
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_file(path: str) -> None:
    """SQLite would let everybody read a new file, and its journals have the mode of the file."""
    if not path.startswith("file:"):  # an address for SQLite itself
        with suppress(OSError):  # which SQLite meets again, and is then explained
            make_private_file(Path(path))


def _set_up_sqlite(raw: Any, _record: Any) -> None:
    raw.isolation_level = None  # transactions begin where we say, not at the first change
    raw.execute(f"PRAGMA {_PATIENT}").close()
    _use_journal(raw)
    for setting in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",  # what is forgotten is overwritten
    ):
        raw.execute(f"PRAGMA {setting}").close()


def _use_journal(raw: Any) -> None:
    """Have changes written ahead. While another connection sees to the same in a new file, SQLite
    refuses at once, however patient it was told to be."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_LOOK_SECONDS)
        else:
            return


def _is_busy(error: BaseException | None) -> bool:
    """Whether SQLite only wants to be asked again; the lowest byte tells, whatever the reason."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _begin_sqlite(connection: Connection) -> None:
    if connection.get_execution_options().get("writes"):
        _begin_to_write(connection)
    else:
        connection.exec_driver_sql("BEGIN")


def _begin_to_write(connection: Connection) -> None:
    """Wait for other writers, looking often: SQLite itself looks less and less often, so that one
    busy writer could keep another waiting for seconds."""
    deadline = time.monotonic() + _BUSY_SECONDS
    connection.exec_driver_sql(f"PRAGMA {_IMPATIENT}")
    try:
        while not _try_to_begin(connection, last=time.monotonic() >= deadline):
            pass
    finally:
        connection.exec_driver_sql(f"PRAGMA {_PATIENT}")


def _try_to_begin(connection: Connection, *, last: bool) -> bool:
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if last or not _is_busy(error.orig):
            raise
        return False
    return True


def _describe(url: URL) -> str:
    """Name the database without user, password or options."""
    if url.get_backend_name() == "sqlite":
        return f"the SQLite database {url.database}"
    return f"the PostgreSQL database {url.database!r} on {url.host or 'this machine'}"
