"""Statistics of prediction requests in the last minutes: counts, errors and latency."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import quantiles
from threading import Lock

from attakit.client.dashboard_bodies import TrafficBody

SECONDS = 300.0
_MOST = 20_000  # newest requests that are remembered
_SERVER_ERROR, _CLIENT_ERROR = 500, 400


class Traffic:
    """The newest prediction requests to this server.

    Parameters
    ----------
    clock
        Function that returns monotonic seconds.

    Examples
    --------
    >>> traffic = Traffic()
    >>> for seconds in (0.01, 0.02, 0.03):
    ...     traffic.note(200, seconds)
    >>> traffic.note(503, 0.5)
    >>> body = traffic.body()
    >>> body.requests, body.failed, body.refused, round(body.median, 3)
    (4, 1, 0, 0.02)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._noted: deque[tuple[float, int, float]] = deque(maxlen=_MOST)

    def note(self, status: int, seconds: float) -> None:
        """Record a request that was answered now, with its status and duration."""
        with self._lock:
            self._noted.append((self._clock(), status, seconds))

    def body(self) -> TrafficBody:
        """Return counts, and the latency of successful predictions."""
        with self._lock:
            oldest = self._clock() - SECONDS
            while self._noted and self._noted[0][0] < oldest:
                self._noted.popleft()
            noted = list(self._noted)
        answered = [seconds for _, status, seconds in noted if 0 < status < _CLIENT_ERROR]
        steps = (
            quantiles(answered, n=20, method="inclusive") if len(answered) > 1 else answered * 20
        )
        return TrafficBody(
            seconds=SECONDS,
            requests=len(noted),
            failed=sum(status >= _SERVER_ERROR or status == 0 for _, status, _ in noted),
            refused=sum(_CLIENT_ERROR <= status < _SERVER_ERROR for _, status, _ in noted),
            median=steps[9] if answered else None,
            slowest=steps[18] if answered else None,
        )
