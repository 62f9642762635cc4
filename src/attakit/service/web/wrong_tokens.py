"""WrongTokens: a limit on log-in attempts that all servers of a deployment share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from attakit.service.storage.storage import KeyValueStore
from attakit.service.web.buckets import TokenBuckets

_NAME = "wrong_tokens"
_PER_MINUTE = 10
_BURST = 5
_RATE = _PER_MINUTE / 60
_ADDRESSES = 1000  # newest addresses that are remembered
_SHARED_PER_MINUTE = 600  # attempts that one server reports, so that it does not flood the database
_ALL = "all"


class WrongTokens:
    """Counts wrong tokens by address: locally, and in the database if servers share one.

    An attempt reaches the database only if this server alone would allow it.

    Parameters
    ----------
    key_values
        Where servers share the counts; None for a single server, which needs no database for it.
    clock, ticks
        Functions that return the time of day, which servers share, and monotonic seconds.

    Examples
    --------
    >>> wrong = WrongTokens(ticks=lambda: 0.0)
    >>> [wrong.wait("10.0.0.1") for _ in range(6)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 6.0]
    """

    def __init__(
        self,
        key_values: KeyValueStore | None = None,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key_values = key_values
        self._clock = clock
        self._here = TokenBuckets(_PER_MINUTE, burst=_BURST, ticks=ticks)
        self._reports = TokenBuckets(_SHARED_PER_MINUTE, ticks=ticks)

    def wait(self, address: str) -> float:
        """Count an attempt and return 0.0, or return the seconds until the next is allowed."""
        seconds = self._here.wait(address)
        if seconds or self._key_values is None or self._reports.wait(_ALL):
            return seconds
        counts = self._key_values.change(_NAME, lambda old: self._count(old or {}, address))
        return float(counts[address][2])

    def _count(self, counts: dict[str, Any], address: str) -> dict[str, Any]:
        """Return for each address its level, the time, and the seconds to wait.

        The level rises by one with each allowed attempt, and falls with time.
        """
        now = self._clock()
        before, at, _ = counts.pop(address, (0.0, now, 0.0))
        level = max(0.0, before - max(0.0, now - at) * _RATE)
        wait = max(0.0, (level + 1 - _BURST) / _RATE)
        entry = (level if wait else level + 1, now, wait)
        return {**dict(list(counts.items())[1 - _ADDRESSES :]), address: entry}
