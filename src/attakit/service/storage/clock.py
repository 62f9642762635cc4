"""A clock that never goes back, even if the system clock does."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SteadyClock:
    """A time that continues from the newest known time if the clock is set back.

    Leases and settling times are stored as times of day. If the clock is set back by two hours,
    they would last two hours longer. Here time continues normally until the system clock has caught
    up.

    Parameters
    ----------
    clock
        The system clock.
    newest
        The newest stored time.

    Examples
    --------
    >>> wall = iter([100.0, 40.0, 45.0, 120.0])
    >>> clock = SteadyClock(lambda: next(wall))
    >>> clock(), clock(), clock(), clock()
    (100.0, 100.0, 105.0, 120.0)
    """

    def __init__(self, clock: Callable[[], float], newest: float = 0.0) -> None:
        self._clock = clock
        self._newest = newest
        self._ahead = 0.0  # seconds ahead of the system clock
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            wall = self._clock()
            behind = self._newest - wall
            # A clock that is set back again is even further behind.
            self._ahead = max(self._ahead, behind) if behind > 0 else 0.0
            self._newest = wall + self._ahead
            return self._newest
