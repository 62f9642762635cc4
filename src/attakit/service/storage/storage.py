"""Storage: everything that a service stores, in one database."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from sqlalchemy import select

from attakit.errors import SettingError, StateError
from attakit.files import make_private_folder
from attakit.service.storage.blobs import BlobTable
from attakit.service.storage.checking import CheckStore
from attakit.service.storage.claims import Claim
from attakit.service.storage.database import Database, database_url
from attakit.service.storage.questions import QuestionStore
from attakit.service.storage.rows import Event, LabelRules
from attakit.service.storage.samples import SampleStore
from attakit.service.storage.tables import add_event, events, facts, put_fact
from attakit.service.storage.tokens import TokenStore
from attakit.service.storage.traffic import TrafficStore
from attakit.service.storage.turns import TurnStore
from attakit.service.storage.versions import VersionStore

_PATIENCE = 60.0  # seconds to wait for a process that starts at the same time
_POLL_SECONDS = 0.05


class KeyValueStore:
    """Single values by name that server and learner share, such as whether learning is paused."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value with this name, or the default if it was never set."""
        query = select(facts.c.value).where(facts.c.name == name)
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return default if row is None else row.value

    def set(self, name: str, value: Any) -> None:
        """Set a value. It must be JSON."""
        with self._database.write() as connection:
            put_fact(connection, name, value)

    def change(self, name: str, change: Callable[[Any], Any]) -> Any:
        """Replace a value by a function of it (None if never set), and return the new value.

        No other process can set it meanwhile.
        """
        with self._database.write() as connection:
            before = connection.scalar(select(facts.c.value).where(facts.c.name == name))
            after = change(before)
            if after != before:
                put_fact(connection, name, after)
        return after


class EventStore:
    """Reads the event log, and adds events that other stores do not add."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, kind: str, who: str, **details: Any) -> None:
        """Add a line."""
        with self._database.write() as connection:
            add_event(connection, self._database.clock(), kind, who, **details)

    def recent(
        self, limit: int, kind: str | None = None, *, without: Sequence[str] = ()
    ) -> tuple[Event, ...]:
        """Return the newest events, newest first: of one kind, or of all but some."""
        query = select(events).order_by(events.c.number.desc()).limit(limit)
        if kind is not None:
            query = query.where(events.c.kind == kind)
        return self._database.find(Event, query.where(events.c.kind.not_in(without)))


class Storage:
    """Samples, questions, turns, versions, events, tokens and single values of one service."""

    def __init__(self, database: Database, labels: LabelRules) -> None:
        self._database = database
        self.samples = SampleStore(database)
        self.questions = QuestionStore(database, labels)
        self.checks = CheckStore(database)
        self.turns = TurnStore(database)
        self.versions = VersionStore(database)
        self.events = EventStore(database)
        self.tokens = TokenStore(database)
        self.key_values = KeyValueStore(database)
        self.blobs = BlobTable(database)
        self.traffic = TrafficStore(database)

    @property
    def is_shared(self) -> bool:
        """True if several machines can use it: with PostgreSQL, not with an SQLite file."""
        return not self._database.is_sqlite

    def claim(self, name: str) -> Claim:
        """Return a role with this name, for one process of the deployment at a time."""
        return Claim(self._database, name)

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Run the block in one process of the deployment at a time; others wait."""
        claim = self.claim(name)
        deadline = time.monotonic() + _PATIENCE
        try:
            while not claim.hold():
                if time.monotonic() > deadline:
                    raise StateError(
                        f"Storage: another process has not finished {name!r} within "
                        f"{_PATIENCE:.0f} s. Check its log."
                    )
                time.sleep(_POLL_SECONDS)
            yield
        finally:
            claim.release()

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def open_storage(
    folder: Path,
    url: str | None = None,
    *,
    labels: LabelRules | None = None,
    clock: Callable[[], float] = time.time,
) -> Storage:
    """Open the storage of a service. Tables are created on first use.

    Parameters
    ----------
    folder
        The folder of the SQLite file, if no URL is given. It is created if it does not exist.
    url
        The URL of a PostgreSQL database, or of another SQLite file.
    labels
        The rules that say when an answer counts; by default those of a service without settings.
    clock
        A function that returns the time of day.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place, open_storage(Path(place)) as storage:
    ...     storage.key_values.set("paused", True)
    ...     storage.key_values.get("paused")
    True
    """
    if url is None:
        make_service_folder(folder)
    return Storage(Database(database_url(folder, url), clock), labels or LabelRules())


def make_service_folder(folder: Path) -> None:
    """Create the private folder of a service, or raise `SettingError`."""
    try:
        make_private_folder(folder)
    except OSError as error:
        raise SettingError(
            f"Storage: the folder {folder} cannot be created ({error.strerror}). "
            f"Choose another one."
        ) from error
