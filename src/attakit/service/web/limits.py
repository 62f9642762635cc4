"""How much, and how often: request sizes, alone and together, and requests by one client."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attakit.service.web.errors import problem, refuse

_BUCKETS = 10_000  # clients remembered; those not seen for longest make room
_BURST_SECONDS = 10.0  # a client may save up requests for so long
_SMALL = 1_000_000  # bytes, where nobody uploads anything
UPLOADS = ("/v1/predict", "/v1/import/")
_FULL = "The server holds as much of other requests as it may. Try again in a moment."


class TokenBuckets:
    """So many requests per minute by each client, with short bursts.

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
        clients: int = _BUCKETS,
    ) -> None:
        self.rate = per_minute / 60
        self.burst = max(1.0, self.rate * _BURST_SECONDS) if burst is None else burst
        self._ticks = ticks
        self._clients = clients
        self._lock = Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens, and when

    def wait(self, client: str) -> float:
        """Take a token; 0.0, or the seconds until there is one."""
        now = self._ticks()
        with self._lock:
            tokens, at = self._buckets.pop(client, (self.burst, now))
            tokens = min(self.burst, tokens + (now - at) * self.rate)
            taken = tokens >= 1
            self._buckets[client] = (tokens - 1 if taken else tokens, now)
            while len(self._buckets) > self._clients:
                self._buckets.popitem(last=False)
        return 0.0 if taken else (1 - tokens) / self.rate


class ByteLimit:
    """Bytes of request bodies that may be held at the same time.

    Only what came is counted, not what was announced: otherwise a client could keep others out
    by announcing much and sending nothing.

    Examples
    --------
    >>> room = ByteLimit(10)
    >>> room.take(8), room.take(3), room.free
    (True, False, 2)
    """

    def __init__(self, most: int) -> None:
        self.free = most

    def take(self, count: int) -> bool:
        """Take so many bytes, unless they are too many."""
        if count > self.free:
            return False
        self.free -= count
        return True

    def give_back(self, count: int) -> None:
        self.free += count


class Limits:
    """Refuses clients that ask too often, and reads no more than is allowed: of one request, and
    of all that are being answered together.

    Parameters
    ----------
    app
        What is behind.
    buckets
        How often.
    upload
        Most bytes of a request that brings inputs or answers in bulk.
    room
        For the bodies of all requests that are being answered.
    """

    def __init__(
        self, app: ASGIApp, *, buckets: TokenBuckets, upload: int, room: ByteLimit
    ) -> None:
        self.app = app
        self.buckets = buckets
        self.upload = upload
        self.room = room

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
        if announced > self.room.free:
            await problem(503, _FULL, {"Retry-After": "1"})(scope, receive, send)
            return
        body = _Body(receive, limit, self.room)
        try:
            await self.app(scope, body.receive, send)
        finally:
            self.room.give_back(body.size)


class _Body:
    """A request, cut off where it becomes too large, whatever its head announced."""

    def __init__(self, receive: Receive, limit: int, room: ByteLimit) -> None:
        self._receive = receive
        self._limit = limit
        self._room = room
        self.size = 0  # bytes that came, and that are held until the answer is given

    async def receive(self) -> Message:
        message = await self._receive()
        count = len(message.get("body", b""))
        if self.size + count > self._limit:
            raise refuse(413, _too_large(self._limit))
        if not self._room.take(count):
            raise refuse(503, _FULL, retry_after=1)
        self.size += count
        return message


def _announced(scope: Scope) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit / 1e6:g} MB. Send fewer inputs at once."
