"""Health: current problems of the storage, kept in memory because they cannot be stored."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from attakit.client.dashboard_bodies import AlarmBody, StatusBody
from attakit.errors import StateError

_SLOW_SECONDS = 3.0  # the database has a problem if it takes longer to answer
_SLOW = (
    "The database has not answered for a few seconds. Predictions continue. Answers wait or are "
    "refused. Check whether another program locks it."
)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that has failed since a time of day; `text` is for operators."""

    what: str
    text: str
    since: float


class Health:
    """The current faults of the storage, and counts of failures.

    It is thread-safe. `clock` returns the time of day, `ticks` monotonic seconds.

    Examples
    --------
    >>> health = Health(clock=lambda: 60.0)
    >>> health.fail("samples", "Samples cannot be stored.")
    >>> health.problems()
    ['Samples cannot be stored.']
    >>> health.recover("samples").since
    60.0
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._ticks = ticks
        self._lock = Lock()
        self._faults: dict[str, Fault] = {}
        self._asked: float | None = None  # when the database was asked, while it has not answered
        self._last: StatusBody | None = None
        self.failures: Counter[str] = Counter()

    def fail(self, what: str, text: str) -> None:
        """Record a failure. The first failure sets the start time."""
        with self._lock:
            self.failures[what] += 1
            known = self._faults.get(what)
            self._faults[what] = Fault(what, text, known.since if known else self._clock())

    def recover(self, what: str) -> Fault | None:
        """Record that something works, and return the fault that has ended, if any."""
        with self._lock:
            return self._faults.pop(what, None)

    def ask(self) -> None:
        """Record that the database is asked now, until `answered` is called."""
        self._asked = self._ticks()

    def answered(self) -> None:
        self._asked = None

    def faults(self) -> list[Fault]:
        """Return the current faults, newest first."""
        asked = self._asked
        with self._lock:
            found = sorted(self._faults.values(), key=lambda fault: fault.since, reverse=True)
        slow = 0.0 if asked is None else self._ticks() - asked
        if slow > _SLOW_SECONDS:
            found.insert(0, Fault("database", _SLOW, self._clock() - slow))
        return found

    def problems(self) -> list[str]:
        """Return the current faults as sentences."""
        return [fault.text for fault in self.faults()]

    def complete(self, read: Callable[[], StatusBody]) -> StatusBody:
        """Return a status with the current faults as alarms.

        If the database cannot be read, it is the last status that was read.
        """
        try:
            self._last = read()
        except StateError:
            if self._last is None:
                raise
        status = self._last
        alarms = [AlarmBody(at=one.since, what="storage", text=one.text) for one in self.faults()]
        return status.model_copy(update={"alarms": [*alarms, *status.alarms]})
