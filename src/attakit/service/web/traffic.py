"""Statistics of prediction requests over time: counts, errors and latency."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock

from attakit.client.dashboard_bodies import TrafficBody
from attakit.service.storage.traffic import TrafficPeriod

PERIOD = 30.0  # seconds
_MOST_PERIODS = 120  # that wait to be written: an hour
_SCALE = 20  # steps of the latency scale per factor of e, so a step is 5 %
_FASTEST = 1e-6  # seconds
_SERVER_ERROR, _CLIENT_ERROR = 500, 400


@dataclass
class Tally:
    """Counts of requests, and how many had each latency."""

    requests: int = 0
    failed: int = 0
    refused: int = 0
    latencies: Counter[int] = field(default_factory=Counter)

    def note(self, status: int, seconds: float) -> None:
        """Count a request. Its latency counts if it was successful."""
        self.requests += 1
        if status >= _SERVER_ERROR or status == 0:  # 0: the client got no response
            self.failed += 1
        elif status >= _CLIENT_ERROR:
            self.refused += 1
        else:
            self.latencies[round(_SCALE * math.log(max(seconds, _FASTEST)))] += 1

    def add(self, period: TrafficPeriod) -> None:
        """Add the counts of a period."""
        self.requests += period.requests
        self.failed += period.failed
        self.refused += period.refused
        self.latencies.update(dict(period.latencies))

    def quantile(self, share: float) -> float | None:
        """Return the seconds within which this share was answered; None without successes."""
        wanted = share * self.latencies.total()
        steps = sorted(self.latencies)
        sums = accumulate(self.latencies[step] for step in steps)
        found = (step for step, total in zip(steps, sums, strict=True) if total >= wanted)
        return next((math.exp(step / _SCALE) for step in found), None)

    def body(self, seconds: float) -> TrafficBody:
        """Return the counts as a response, for a period of this many seconds."""
        return TrafficBody(
            seconds=seconds,
            requests=self.requests,
            failed=self.failed,
            refused=self.refused,
            median=self.quantile(0.5),
            slowest=self.quantile(0.95),
        )


class Traffic:
    """The newest prediction requests to this server, in periods of 30 seconds.

    Parameters
    ----------
    clock
        Function that returns the time of day.

    Examples
    --------
    >>> traffic = Traffic(clock=lambda: 60.0)
    >>> for seconds in (0.01, 0.02, 0.03):
    ...     traffic.note(200, seconds)
    >>> traffic.note(503, 0.5)
    >>> [period] = traffic.periods("server 1")
    >>> period.at, period.requests, period.failed, period.refused
    (60.0, 4, 1, 0)
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._tallies: dict[float, Tally] = {}

    def note(self, status: int, seconds: float) -> None:
        """Record a request that was answered now, with its status and duration."""
        at = self._clock() // PERIOD * PERIOD
        with self._lock:
            if at not in self._tallies:
                self._start(at)
            self._tallies[at].note(status, seconds)

    def periods(self, server: str) -> list[TrafficPeriod]:
        """Return the periods that were not written yet, the current one last."""
        with self._lock:
            return [
                TrafficPeriod(
                    at, server, one.requests, one.failed, one.refused, (*one.latencies.items(),)
                )
                for at, one in sorted(self._tallies.items())
            ]

    def drop(self, written: Iterable[TrafficPeriod]) -> None:
        """Forget periods that were written."""
        with self._lock:
            for one in written:
                self._tallies.pop(one.at, None)

    def _start(self, at: float) -> None:
        self._tallies[at] = Tally()
        while len(self._tallies) > _MOST_PERIODS:  # the database cannot be written
            del self._tallies[min(self._tallies)]
