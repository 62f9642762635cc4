"""Facts: single values that server and learner both need to know."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from attakit.service.storage.database import Database
from attakit.service.storage.tables import facts


class KeyValueStore:
    """Values by name, such as whether learning is paused."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, default: Any = None) -> Any:
        """The value of that name, or the default if it was never set."""
        query = select(facts.c.value).where(facts.c.name == name)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return default if row is None else row.value

    def set(self, name: str, value: Any) -> None:
        """Set a value, which must be one that JSON knows."""
        with self._database.write() as connection:
            same_name = facts.c.name == name
            changed = connection.execute(facts.update().where(same_name).values(value=value))
            if changed.rowcount == 0:
                connection.execute(facts.insert().values(name=name, value=value))
