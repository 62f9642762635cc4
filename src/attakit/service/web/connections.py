"""Connection limits: how many, how long the head of a request may be, and timeouts.

uvicorn can only limit the number of connections, and then refuses the next request of any client.
Here a connection without a known caller makes room for a new one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 64_000  # bytes of an address and its headers
CALLER = "caller"  # who sent a request, in the state of its scope
CONNECTION = "connection"  # what is known about its connection
_SWEEP_SECONDS = 1.0


class Connections:
    """The open connections, longest unused first.

    Parameters
    ----------
    most
        The largest number of connections. For a further one, the longest unused connection without
        a known caller is closed. If all have one, the new connection is closed.
    head_seconds
        Seconds until a head must be complete, from the connection or the response before it.
    stalled_seconds
        Seconds that a client may leave a response unread.
    """

    def __init__(self, most: int, *, head_seconds: float, stalled_seconds: float) -> None:
        self.most = most
        self.head_seconds = head_seconds
        self.stalled_seconds = stalled_seconds
        self._open: OrderedDict[BoundedProtocol, None] = OrderedDict()
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def add(self, one: BoundedProtocol) -> bool:
        """Add a connection; False if there is no place for it."""
        if len(self._open) >= self.most and not self._make_room():
            return False
        self._open[one] = None
        if self._sweeping is None:
            self._sweeping = one.loop.call_later(_SWEEP_SECONDS, self._sweep, one.loop)
        return True

    def used(self, one: BoundedProtocol) -> None:
        """Record that a connection was just used."""
        if one in self._open:
            self._open.move_to_end(one)

    def remove(self, one: BoundedProtocol) -> None:
        """Remove a closed connection."""
        self._open.pop(one, None)

    def _make_room(self) -> bool:
        for _ in range(len(self._open)):
            oldest = next(iter(self._open))
            if not oldest.has_known_caller:
                self._open.pop(oldest)
                oldest.transport.abort()
                return True
            self._open.move_to_end(oldest)
        return False

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close connections that took too long. One timer for all costs requests nothing."""
        now = loop.time()
        for one in [one for one in self._open if one.is_late(now)]:
            self.remove(one)
            one.transport.abort()
        again = bool(self._open)
        self._sweeping = loop.call_later(_SWEEP_SECONDS, self._sweep, loop) if again else None


class BoundedConfig(uvicorn.Config):
    """uvicorn's configuration, with limits for connections."""

    def __init__(self, app: ASGIApp, bounds: Connections, **options: Any) -> None:
        super().__init__(app, http=BoundedProtocol, **options)
        self.bounds = bounds


class BoundedProtocol(HttpToolsProtocol):
    """A connection within limits."""

    def __init__(self, config: BoundedConfig, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self.bounds = config.bounds
        self._since = self.loop.time()  # since when it waits for a head, or for a reader
        self._unused = 0  # bytes that are not yet part of a head, a body or an end
        self._head = 0  # bytes of the head, or of the trailers after a body
        self._hosts = 0  # names that the head gives to this server
        self._stalled = False
        self._notes: dict[str, Any] = {}

    @property
    def has_known_caller(self) -> bool:
        """True if a caller with a valid token waits for a response."""
        waiting = self.cycle is not None and not self.cycle.response_complete
        return waiting and self.cycle.scope["state"].get(CALLER) is not None

    def is_late(self, now: float) -> bool:
        """True if the client took too long to send a head or to read a response."""
        if self._stalled or self.transport.get_write_buffer_size():
            return now - self._since > self.bounds.stalled_seconds
        waiting = self.cycle is None or self.cycle.response_complete
        return waiting and now - self._since > self.bounds.head_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.bounds.add(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.bounds.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unused += len(data)
        super().data_received(data)
        if self._unused > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The head of the request is too long.")

    def on_message_begin(self) -> None:
        self._head = self._hosts = 0
        super().on_message_begin()
        self.scope["state"][CONNECTION] = self._notes

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(": \r\n"))
        self._hosts += name.lower() == b"host"
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        # With two names, a proxy in front may have checked the other one (RFC 9112, 3.2).
        if self._hosts > 1 or (not self._hosts and self.parser.get_http_version() != "1.0"):
            raise httptools.HttpParserError("A request needs exactly one Host header.")
        self._unused = self._head = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unused = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unused = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        self.bounds.used(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        self._since, self._stalled = self.loop.time(), True
        super().pause_writing()

    def resume_writing(self) -> None:
        self._stalled = False
        super().resume_writing()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > LONGEST_HEAD:
            raise httptools.HttpParserError("The head of the request is too long.")
