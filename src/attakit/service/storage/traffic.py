"""TrafficStore: how many requests each server answered, how fast, and how many failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Column, Float, Integer, MetaData, String, Table, delete, inspect, select

from attakit.service.storage.database import Database
from attakit.service.storage.rows import field_values
from attakit.service.storage.tables import TuplesColumn, counted, required

# Separate from the other tables: it is created when first needed, and it may be dropped at any
# time without losing an answer.
_metadata = MetaData()
_traffic = Table(
    "traffic",
    _metadata,
    counted("number"),  # a clock that is set back makes two rows of one period
    Column("at", Float, nullable=False, index=True),
    *required(server=String, requests=Integer, failed=Integer, refused=Integer),
    *required(latencies=TuplesColumn),
)


@dataclass(frozen=True, slots=True)
class TrafficPeriod:
    """The prediction requests that one server answered in a short period."""

    at: float  # start of the period
    server: str
    requests: int
    failed: int
    refused: int
    latencies: tuple[tuple[int, int], ...]  # step of the latency scale, and how many requests


class TrafficStore:
    """Periods of all servers of a deployment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_made = False

    def add(self, periods: Sequence[TrafficPeriod], *, oldest: float) -> None:
        """Add periods, and remove those that began before `oldest`."""
        self._make()
        with self._database.write() as connection:
            if periods:
                connection.execute(_traffic.insert(), [field_values(one) for one in periods])
            connection.execute(delete(_traffic).where(_traffic.c.at < oldest))

    def since(self, at: float) -> tuple[TrafficPeriod, ...]:
        """Return the periods that began at this time or later, oldest first."""
        if not self._exists():
            return ()
        query = select(_traffic).where(_traffic.c.at >= at).order_by(_traffic.c.at)
        return self._database.find(TrafficPeriod, query)

    def _exists(self) -> bool:
        """True if the table was made. A reader does not make it: the disk may be full."""
        if not self._is_made:
            with self._database.read() as connection:
                self._is_made = inspect(connection).has_table(_traffic.name)
        return self._is_made

    def _make(self) -> None:
        if not self._exists():
            with self._database.write() as connection:
                _metadata.create_all(connection)
            self._is_made = True
