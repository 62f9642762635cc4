"""Claim: a role that one process of a deployment holds at a time, such as the learner's."""

from __future__ import annotations

from contextlib import suppress

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from attakit.errors import StateError
from attakit.service.storage.database import Database

_KIND = 0x61747462  # separates these locks from others on the same database
# Deployments may share a database, each in its own schema.
_KEY = "hashtext(current_schema() || ' ' || :name)"
_TRY = text(f"SELECT pg_try_advisory_lock(:kind, {_KEY})")
_FREE = text(f"SELECT pg_advisory_unlock(:kind, {_KEY})")
_IS_TAKEN = text(
    "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    f"AND classid::bigint = :kind AND objid::bigint = ({_KEY}::bigint & 4294967295))"
)
# A machine that vanishes without closing its connection loses its roles after 30 seconds.
_NOTICE_DEATH = (
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 4",
)


class Claim:
    """A named role. PostgreSQL gives it to one connection, and frees it when that ends.

    SQLite has one process tree, and lock files keep others out, so the claim always holds.

    Parameters
    ----------
    database
        The database that all processes of the deployment use.
    name
        The name of the role.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._values = {"kind": _KIND, "name": name}
        self._connection: Connection | None = None
        self._held = False

    def hold(self) -> bool:
        """Claim the role, or check that it is still held. Returns True if it is."""
        if self._database.is_sqlite:
            return True
        try:
            if self._connection is None:
                self._connection = self._connect()
            if self._held:
                self._connection.execute(text("SELECT 1"))
            else:
                self._held = bool(self._connection.scalar(_TRY, self._values))
        except (SQLAlchemyError, StateError):  # without a connection the server frees the role
            self.release()
        return self._held

    def is_taken(self) -> bool:
        """True if any process has the role now."""
        if self._database.is_sqlite:
            return True
        with self._database.read() as connection:
            return bool(connection.scalar(_IS_TAKEN, self._values))

    def release(self) -> None:
        """Release the role, if it is held."""
        held, self._held = self._held, False
        connection, self._connection = self._connection, None
        if connection is None:
            return
        with suppress(SQLAlchemyError):
            if held:  # closing the connection frees it too, but later
                connection.execute(_FREE, self._values)
        with suppress(SQLAlchemyError):
            connection.close()

    def _connect(self) -> Connection:
        connection = self._database.connect()
        for setting in _NOTICE_DEATH:
            connection.execute(text(setting))
        return connection
