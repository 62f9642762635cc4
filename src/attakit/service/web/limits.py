"""Limits: requests per client, the size of a request, and the size of all requests together."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock

from cachetools import LRUCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attakit.service.web.errors import problem, refuse

_CLIENTS = 10_000  # clients with a bucket; the least recent one is dropped for a new one
_BURST_SECONDS = 10.0  # a bucket fills up in this time
_SMALL = 1_000_000  # bytes of a request to an address without uploads
UPLOADS = ("/v1/predict", "/v1/import/")
_FULL = "The server is busy with other large requests. Try again in a moment."


class TokenBuckets:
    """A token bucket for each client: a rate limit that allows short bursts.

    The library `limits` has windows but no token bucket. A window makes a client wait until its
    whole burst has expired, where a bucket asks for the time of one request. It also keeps one
    entry per request and any number of clients.

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


class ByteLimit:
    """A limit on the bytes of request bodies that are in memory at the same time.

    Only received bytes count, not announced ones. Otherwise a client could block others by
    announcing a large body and sending nothing.

    Examples
    --------
    >>> limit = ByteLimit(10)
    >>> limit.take(8), limit.take(3), limit.free
    (True, False, 2)
    """

    def __init__(self, limit: int) -> None:
        self.free = limit

    def take(self, count: int) -> bool:
        """Reserve bytes, and return whether there were enough."""
        if count > self.free:
            return False
        self.free -= count
        return True

    def give_back(self, count: int) -> None:
        """Free bytes that were reserved."""
        self.free += count


class Limits:
    """Middleware that rejects requests that come too often or are too large.

    A request with inputs or answers in bulk may have `upload` bytes. `held` limits the bodies of
    all requests that are being answered.
    """

    def __init__(
        self, app: ASGIApp, *, buckets: TokenBuckets, upload: int, held: ByteLimit
    ) -> None:
        self.app = app
        self.buckets = buckets
        self.upload = upload
        self.held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in ("/healthz", "/readyz"):
            await self.app(scope, receive, send)
            return
        client = scope["client"][0] if scope.get("client") else "unknown"
        seconds = self.buckets.wait(client)
        if seconds:
            response = problem(
                429,
                f"Too many requests. Wait {max(1, round(seconds))} s before the next one.",
                {"Retry-After": str(max(1, round(seconds)))},
            )
            await response(scope, receive, send)
            return
        limit = self.upload if scope["path"].startswith(UPLOADS) else min(_SMALL, self.upload)
        announced = _announced(scope)
        if announced > limit:
            await problem(413, _too_large(limit))(scope, receive, send)
            return
        if announced > self.held.free:
            await problem(503, _FULL, {"Retry-After": "1"})(scope, receive, send)
            return
        body = _Body(receive, limit, self.held)
        try:
            await self.app(scope, body.receive, send)
        finally:
            self.held.give_back(body.size)


class _Body:
    """A request body that is cut off where it becomes too large, whatever was announced."""

    def __init__(self, receive: Receive, limit: int, held: ByteLimit) -> None:
        self._receive = receive
        self._limit = limit
        self._held = held
        self.size = 0  # received bytes, in memory until the answer is sent

    async def receive(self) -> Message:
        message = await self._receive()
        count = len(message.get("body", b""))
        if self.size + count > self._limit:
            raise refuse(413, _too_large(self._limit))
        if not self._held.take(count):
            raise refuse(503, _FULL, retry_after=1)
        self.size += count
        return message


def _announced(scope: Scope) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit / 1e6:g} MB. Send fewer inputs at once."
