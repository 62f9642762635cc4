"""Middleware around every request: security headers, metrics and the access log."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attakit.service.web.errors import unexpected
from attakit.service.web.metrics import Metrics

log = logging.getLogger("attakit.access")

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "font-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_RAW = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
_NO_STORE = (b"cache-control", b"no-store")
_QUIET = {"/healthz", "/readyz", "/metrics"}


class Observing:
    """Middleware that adds headers, counts and logs requests, and answers unexpected errors."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message, scope["path"])
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Exception as error:
            response = unexpected(error, route_of(scope))
            if not status:
                await response(scope, receive, send_with_headers)
        finally:
            self._note(scope, status, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = route_of(scope)
        self.metrics.count_request(scope["method"], route, status, seconds)
        caller = scope.get("state", {}).get("caller")
        level = logging.DEBUG if scope["path"] in _QUIET else logging.INFO
        log.log(
            level,
            "request",
            extra={
                "method": scope["method"],
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 2),
                "who": getattr(caller, "name", None),
            },
        )


def route_of(scope: Scope) -> str:
    """Return the route's pattern: there are few patterns, but any number of addresses."""
    return str(getattr(scope.get("route"), "path", "other"))


def _add_headers(message: Message, path: str) -> None:
    """Add what the response does not set itself. ASGI needs names in lower case."""
    headers = message.get("headers", ())
    there = {name for name, _ in headers}
    wanted = _RAW if path.startswith("/static/") else [*_RAW, _NO_STORE]
    message["headers"] = [*headers, *(one for one in wanted if one[0] not in there)]
