"""A clock that never goes back, although the clock on the wall may."""

from __future__ import annotations

import threading
from collections.abc import Callable


class SteadyClock:
    """Time that continues from the newest known time if the clock is set back.

    Leases and settling times are stored as times of day. With a clock that is set back by two
    hours they would last two hours longer. Here time passes on as if nothing had happened, until
    the clock on the wall has caught up.

    Parameters
    ----------
    clock
        The clock on the wall.
    newest
        The newest time that is stored.

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
        self._ahead = 0.0  # of the clock on the wall
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            wall = self._clock()
            behind = self._newest - wall
            # A clock that is set back a second time is further behind than it was.
            self._ahead = max(self._ahead, behind) if behind > 0 else 0.0
            self._newest = wall + self._ahead
            return self._newest
