"""SQLite specifics: write-ahead log, waiting for other writers, copies before an upgrade."""

from __future__ import annotations

import glob
import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from attakit.errors import StateError
from attakit.files import atomic_write, make_private_file

log = logging.getLogger(__name__)

_BUSY_SECONDS = 30
_PATIENT = f"busy_timeout = {_BUSY_SECONDS * 1000}"
_POLL_SECONDS = 0.003  # between two checks whether a busy database is free again
_BACKUP = ".before-upgrade-from-"


def make_file(path: str) -> None:
    """Create a private file. SQLite would make it world-readable, and journals copy its mode."""
    if not path.startswith("file:"):  # a URI for SQLite itself
        with suppress(OSError):  # SQLite fails in the same way, with an explanation
            make_private_file(Path(path))


def set_up(raw: Any, _record: Any) -> None:
    """Set up a connection whose committed transactions survive a power cut."""
    raw.isolation_level = None  # transactions begin explicitly, not at the first change
    raw.execute(f"PRAGMA {_PATIENT}").close()
    # SQLite fails at once if another connection does the same in a new file.
    _retry_while_busy(lambda: raw.execute("PRAGMA journal_mode = WAL").close())
    for setting in (
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",  # forgotten data is overwritten
    ):
        raw.execute(f"PRAGMA {setting}").close()


def _retry_while_busy(attempt: Callable[[], object]) -> None:
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            attempt()
        except (sqlite3.OperationalError, OperationalError) as error:
            if not _is_busy(getattr(error, "orig", error)) or time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return


def _is_busy(error: BaseException | None) -> bool:
    """True if the database is locked. The lowest byte of the code says so, for any reason."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def begin(connection: Connection) -> None:
    """Begin a transaction; with the option `writes`, one writer at a time."""
    if connection.get_execution_options().get("writes"):
        _begin_to_write(connection)
    else:
        connection.exec_driver_sql("BEGIN")


def _begin_to_write(connection: Connection) -> None:
    """Wait for other writers, and check often.

    SQLite itself checks less and less often, so that one busy writer could block another for
    seconds.
    """
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        _retry_while_busy(lambda: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    finally:
        connection.exec_driver_sql(f"PRAGMA {_PATIENT}")


def raw_connection(connection: Connection) -> sqlite3.Connection:
    """Return the connection of Python's SQLite module, which begins no transaction implicitly."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def _file(raw: sqlite3.Connection) -> Path:
    """Return the file of a database, also if the URL is in SQLite's own form."""
    return Path(raw.execute("PRAGMA database_list").fetchone()[2])


@contextmanager
def without_foreign_keys(connection: Connection) -> Iterator[None]:
    """Let SQLite remove a table that others refer to. It allows this only between transactions."""
    if connection.dialect.name != "sqlite":
        yield
        return
    raw_connection(connection).execute("PRAGMA foreign_keys = OFF").close()
    try:
        yield
    finally:
        raw_connection(connection).execute("PRAGMA foreign_keys = ON").close()


def back_up(raw: sqlite3.Connection, revision: str) -> None:
    """Copy a database to a private file in the same folder."""
    file = _file(raw)
    copy = file.with_name(f"{file.name}{_BACKUP}{revision}")
    try:
        with atomic_write(copy) as draft:
            make_private_file(draft)
            target = sqlite3.connect(draft)
            try:
                raw.backup(target)
            finally:
                target.close()
    except (OSError, sqlite3.Error) as error:
        raise StateError(
            f"Storage: the SQLite database {file} must be upgraded, but it cannot be backed up to "
            f"{copy.name} first ({error}). Nothing was changed. Free some space, or make its "
            "folder writable, and start again."
        ) from error
    log.warning("the database is upgraded; a copy from before the upgrade is in %s", copy)


def wipe(raw: sqlite3.Connection) -> None:
    """Overwrite deleted data in the journal too, and remove copies from before an upgrade."""
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").close()
    file = _file(raw)
    for copy in file.parent.glob(f"{glob.escape(file.name)}{_BACKUP}*"):
        copy.unlink(missing_ok=True)
