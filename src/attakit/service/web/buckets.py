"""TokenBuckets: a rate limit for each client."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from cachetools import LRUCache

_CLIENTS = 10_000  # clients with a bucket; the least recent one is dropped for a new one
_BURST_SECONDS = 10.0  # a bucket fills up in this time


class TokenBuckets:
    """A token bucket for each client: a rate limit that allows short bursts.

    The library `limits` has windows but no token bucket. With a window, a client waits until its
    whole burst has expired; with a bucket, only for the time of one request. A window also stores
    one entry per request, for any number of clients.

    Parameters
    ----------
    per_minute
        Requests per minute that a client may make.
    burst
        Requests that a client may make at once; by default those of ten seconds.
    ticks
        A function that returns monotonic seconds.
    clients
        The largest number of buckets.

    Examples
    --------
    >>> seconds = iter([0, 0, 0, 1])
    >>> buckets = TokenBuckets(60, burst=1, ticks=lambda: next(seconds))
    >>> buckets.wait("ann"), buckets.wait("ann"), buckets.wait("bob"), buckets.wait("ann")
    (0.0, 1.0, 0.0, 0.0)
    """

    def __init__(
        self,
        per_minute: float,
        *,
        burst: float | None = None,
        ticks: Callable[[], float] = time.monotonic,
        clients: int = _CLIENTS,
    ) -> None:
        self.rate = per_minute / 60
        self.burst = max(1.0, self.rate * _BURST_SECONDS) if burst is None else burst
        self._ticks = ticks
        self._lock = Lock()
        self._buckets: LRUCache[str, tuple[float, float]] = LRUCache(clients)  # tokens, and when

    def wait(self, client: str) -> float:
        """Take a token and return 0.0, or return the seconds until there is one."""
        now = self._ticks()
        with self._lock:
            tokens, at = self._buckets.get(client, (self.burst, now))
            tokens = min(self.burst, tokens + (now - at) * self.rate)
            taken = tokens >= 1
            self._buckets[client] = (tokens - 1 if taken else tokens, now)
        return 0.0 if taken else (1 - tokens) / self.rate
