"""Storage: all that a service remembers, in one database."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import select

from attakit.errors import SettingError
from attakit.service.storage.database import Database, database_url
from attakit.service.storage.events import EventStore
from attakit.service.storage.permissions import make_private_folder
from attakit.service.storage.questions import QuestionStore
from attakit.service.storage.rows import LabelRules
from attakit.service.storage.samples import SampleStore
from attakit.service.storage.tables import facts
from attakit.service.storage.tokens import TokenStore
from attakit.service.storage.turns import TurnStore
from attakit.service.storage.versions import VersionStore


class KeyValueStore:
    """Single values by name that server and learner share, such as whether learning is paused."""

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


class Storage:
    """Samples, questions, turns, versions, events, tokens and single values of one service.

    Parameters
    ----------
    database
        Keeps them all.
    labels
        Say when an answer counts.
    """

    def __init__(self, database: Database, labels: LabelRules) -> None:
        self._database = database
        self.samples = SampleStore(database)
        self.questions = QuestionStore(database, labels)
        self.turns = TurnStore(database)
        self.versions = VersionStore(database)
        self.events = EventStore(database)
        self.tokens = TokenStore(database)
        self.key_values = KeyValueStore(database)

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_storage(
    folder: Path,
    url: str | None = None,
    *,
    labels: LabelRules | None = None,
    clock: Callable[[], float] = time.time,
) -> Storage:
    """Open what a service remembers; the tables are made on first use.

    Parameters
    ----------
    folder
        Holds the SQLite file, if no URL is given; made if it is not there.
    url
        Of a PostgreSQL database, or of another SQLite file.
    labels
        Say when an answer counts; the usual rules if not given.
    clock
        Tells the time.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place, open_storage(Path(place)) as storage:
    ...     storage.key_values.set("paused", True)
    ...     storage.key_values.get("paused")
    True
    """
    if url is None:
        make_folder(folder)
    return Storage(Database(database_url(folder, url), clock), labels or LabelRules())


def make_folder(folder: Path) -> None:
    """Make the folder of a service, for its user alone, or raise `SettingError`."""
    try:
        make_private_folder(folder)
    except OSError as error:
        raise SettingError(
            f"Storage: the folder {folder} cannot be made ({error.strerror}). Choose another one."
        ) from error
