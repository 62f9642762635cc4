"""EventStore: the log of everything that happened, to which lines are only ever added."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from attakit.service.storage.database import Database
from attakit.service.storage.rows import Event
from attakit.service.storage.tables import events


class EventStore:
    """Reads the log, and adds what happens outside of the other stores.

    Labels are never written here: they must be forgotten with their sample, and this log stays.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, kind: str, who: str, **details: Any) -> None:
        """Add a line."""
        with self._database.write() as connection:
            add_event(connection, self._database.clock(), kind, who, **details)

    def recent(self, limit: int, kind: str | None = None) -> tuple[Event, ...]:
        """The newest lines, newest first."""
        query = select(events).order_by(events.c.number.desc()).limit(limit)
        if kind is not None:
            query = query.where(events.c.kind == kind)
        return self._database.find(Event, query)


def add_event(connection: Connection, at: float, kind: str, who: str, **details: Any) -> None:
    """Add a line in the transaction of what it tells."""
    connection.execute(events.insert().values(at=at, kind=kind, who=who, details=details))
