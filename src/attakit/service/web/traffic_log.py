"""TrafficLog: write the traffic of this server, and read that of all servers."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Callable

from attakit.client.dashboard_bodies import TrafficBody, TrafficPoint
from attakit.errors import StateError
from attakit.service.storage.traffic import TrafficPeriod, TrafficStore
from attakit.service.web.traffic import PERIOD, Tally, Traffic
from attakit.service.worker import Worker

log = logging.getLogger(__name__)

_KEPT = 8 * 86_400.0  # seconds
_NEWEST = 300.0  # seconds that count as now


class TrafficLog(Worker):
    """A thread that writes finished periods to the database.

    `clock` returns the time of day. If the database cannot be written, periods wait in memory.
    """

    def __init__(self, traffic: Traffic, store: TrafficStore, clock: Callable[[], float]) -> None:
        super().__init__("traffic log", pause=PERIOD)
        self._traffic = traffic
        self._store = store
        self._clock = clock
        self._server = uuid.uuid4().hex[:12]

    def run_once(self) -> None:
        """Write the periods that are over."""
        now = self._clock()
        over = [one for one in self._traffic.periods(self._server) if one.at + PERIOD <= now]
        if over:
            self._store.add(over, oldest=now - _KEPT)
            self._traffic.drop(over)

    def on_failure(self, error: Exception) -> None:
        if isinstance(error, StateError):  # the watch over the storage reports it
            log.debug("the traffic is not written: %s", error)
        else:
            super().on_failure(error)

    def newest(self) -> TrafficBody:
        """Return the traffic of the last five minutes."""
        tally = Tally()
        for one in self._since(self._clock() - _NEWEST):
            tally.add(one)
        return tally.body(_NEWEST)

    def series(self, points: int, seconds: float) -> list[TrafficPoint]:
        """Return the traffic of the last `seconds` in equal steps, up to the newest request."""
        seconds = min(seconds, _KEPT)
        step = PERIOD * math.ceil(seconds / points / PERIOD)
        tallies: dict[int, Tally] = {}
        for one in self._since(self._clock() - seconds):
            tallies.setdefault(int(one.at // step), Tally()).add(one)
        if not tallies:
            return []
        return [
            TrafficPoint(at=place * step, **tallies.get(place, Tally()).body(step).model_dump())
            for place in range(min(tallies), max(tallies) + 1)
        ]

    def _since(self, at: float) -> list[TrafficPeriod]:
        waiting = [one for one in self._traffic.periods(self._server) if one.at >= at]
        written = self._store.since(at)
        known = {(one.at, one.server) for one in written}  # written, and not dropped yet
        return [*written, *(one for one in waiting if (one.at, one.server) not in known)]
