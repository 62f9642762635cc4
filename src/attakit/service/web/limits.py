"""How much, and how often: request sizes, and requests by one client."""

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


class Limits:
    """Refuses clients that ask too often, and reads no more of a request than is allowed.

    Parameters
    ----------
    app
        What is behind.
    buckets
        How often.
    upload
        Most bytes of a request that brings inputs or answers in bulk.
    """

    def __init__(self, app: ASGIApp, *, buckets: TokenBuckets, upload: int) -> None:
        self.app = app
        self.buckets = buckets
        self.upload = upload

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
        if _announced(scope) > limit:
            await problem(413, _too_large(limit))(scope, receive, send)
            return
        await self.app(scope, _counting(receive, limit), send)


def _counting(receive: Receive, limit: int) -> Receive:
    """The same request, cut off where it becomes too large, whatever its head announced."""
    read = 0

    async def count() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > limit:
            raise refuse(413, _too_large(limit))
        return message

    return count


def _announced(scope: Scope) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit / 1e6:g} MB. Send fewer inputs at once."
