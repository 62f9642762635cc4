"""Who asks, and whether they may: tokens, sessions, and requests that another site made."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Annotated, Any, Literal, Protocol
from urllib.parse import unquote, urlsplit

from anyio import to_thread
from cachetools import TLRUCache
from fastapi import Depends, Security
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.requests import HTTPConnection, Request

from attakit.service.storage.records import Role, Token
from attakit.service.web.errors import refuse
from attakit.service.web.limits import TokenBuckets
from attakit.service.web.sessions import COOKIE, Remembers, Session, Sessions

CSRF_HEADER = "X-CSRF-Token"
ANNOTATOR_HEADER = "X-Annotator"

_CACHE_SECONDS = 1.0  # a token that was revoked counts for so long
_CACHE_SIZE = 1000
_LOGINS_PER_MINUTE = 10
_SAFE = {"GET", "HEAD", "OPTIONS"}
_LONGEST_NAME = 60
_PASSED_ON = {"forwarded", "via", "x-real-ip"}  # proxies add these, or some X-Forwarded-…


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks."""

    name: str
    role: Role
    by: Literal["token", "session", "local"]
    csrf: str | None = None  # for the pages of a session


class KnowsTokens(Protocol):
    """Where tokens are kept, hashed."""

    def check(self, token: str) -> tuple[str, Role] | None: ...

    def all(self) -> tuple[Token, ...]: ...

    def any(self) -> bool: ...


class Guard:
    """Finds out who asks.

    Without any token, and only if the server listens on loopback, everyone on this machine may do
    everything; then a request must come from this machine without a proxy in between, so that
    nobody elsewhere is taken for someone here, and must name this machine as its host, so that no
    web page elsewhere can reach the server under a name of its own.

    Parameters
    ----------
    tokens, facts
        Of the storage.
    host
        Address the server listens on.
    clock, ticks
        Time of day for sessions, and seconds for limits.
    """

    def __init__(
        self,
        tokens: KnowsTokens,
        facts: Remembers,
        *,
        host: str,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tokens = tokens
        self._is_loopback = is_loopback(host)
        self.sessions = Sessions(facts, clock=clock)
        self._logins = TokenBuckets(_LOGINS_PER_MINUTE, burst=5, ticks=ticks)
        self._seen = _Recent(ticks)

    def identify(self, request: HTTPConnection) -> Caller | None:
        """Who asks; None if it cannot be told. Raises if the request must not be answered."""
        if self.is_open():
            _check_local(request)
            return Caller(_annotator(request), "admin", "local")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            found = self._check(token.strip())
            if found is None:
                raise refuse(401, "The token is not known or was revoked. Ask for a new one.")
            return Caller(*found, "token")
        return self._visitor(request)

    def remembers(self, request: HTTPConnection) -> bool:
        """Whether `identify` needs no database for this request."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        wanted = ["any"] if self._is_loopback else []
        if scheme.lower() == "bearer":
            wanted.append(_hashed(token.strip()))
        elif COOKIE in request.cookies:
            wanted.append("all")
        return all(self._seen.has(key) for key in wanted)

    def is_open(self) -> bool:
        """Whether everyone on this machine may do everything."""
        return self._is_loopback and not self._seen.get("any", self._tokens.any)

    def forget(self) -> None:
        """Ask the database anew, not a second later."""
        self._seen.clear()

    def log_in(self, token: str, address: str) -> str:
        """The cookie of a new session; raises for a wrong token, or after too many of them."""
        seconds = self._logins.wait(address)
        if seconds:
            raise refuse(429, "Too many attempts to log in. Wait a moment.", retry_after=seconds)
        found = self._tokens.check(token.strip())
        if found is None:
            raise refuse(401, "The token is not known or was revoked. Ask for a new one.")
        return self.sessions.issue(found[0])

    def _check(self, token: str) -> tuple[str, Role] | None:
        look = self._seen.get(_hashed(token), lambda: self._tokens.check(token))
        found: tuple[str, Role] | None = look
        return found

    def _visitor(self, request: HTTPConnection) -> Caller | None:
        session = self.sessions.read(request.cookies.get(COOKIE, ""))
        role = None if session is None else self._role(session)
        if session is None or role is None:
            return None
        if request.scope["method"] not in _SAFE:
            check_origin(request)
            if not self.sessions.is_csrf(session, request.headers.get(CSRF_HEADER, "")):
                raise refuse(403, f"The header {CSRF_HEADER} is missing or wrong. Reload the page.")
        return Caller(session.name, role, "session", self.sessions.csrf(session))

    def _role(self, session: Session) -> Role | None:
        """Looked up again each time, so that a revoked token ends its sessions."""
        tokens: tuple[Token, ...] = self._seen.get("all", self._tokens.all)
        roles = {token.name: token.role for token in tokens if token.revoked is None}
        return roles.get(session.name)


class _Recent:
    """A cache of database answers that are at most a second old."""

    def __init__(self, ticks: Callable[[], float]) -> None:
        self._ticks = ticks
        self._lock = Lock()
        # Each value has the time before it was read: it is as old as that, however long it took.
        self._values: TLRUCache[str, tuple[float, Any]] = TLRUCache(
            _CACHE_SIZE, ttu=lambda _key, value, _now: value[0] + _CACHE_SECONDS, timer=ticks
        )

    def has(self, key: str) -> bool:
        with self._lock:
            return key in self._values

    def clear(self) -> None:
        with self._lock:
            self._values.clear()

    def get(self, key: str, read: Callable[[], Any]) -> Any:
        with self._lock, suppress(KeyError):
            return self._values[key][1]
        now = self._ticks()
        value = read()
        with self._lock:
            self._values[key] = (now, value)
        return value


def _hashed(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allow(*roles: Role) -> Callable[..., Any]:
    """A dependency that finds out who asks, and refuses those without one of the roles."""
    allowed = {*roles, "admin"}

    async def check(
        request: Request,
        _bearer: Annotated[object, Security(_BEARER)],
        _cookie: Annotated[object, Security(_SESSION)],
    ) -> Caller:
        guard: Guard = request.app.state.parts.guard
        if guard.remembers(request):  # another thread would cost more than it saves
            caller = guard.identify(request)
        else:
            caller = await to_thread.run_sync(guard.identify, request)
        if caller is None:
            raise refuse(401, "This needs a token: send 'Authorization: Bearer TOKEN', or log in.")
        if caller.role not in allowed:
            raise refuse(
                403,
                f"The role {caller.role!r} does not allow this; it takes "
                f"{' or '.join(sorted(allowed))}. Use another token.",
            )
        request.state.caller = caller
        return caller

    return check


_BEARER = HTTPBearer(auto_error=False, description="A token made with `attakit token`")
_SESSION = APIKeyCookie(name=COOKIE, auto_error=False, description="Set by the log-in page")

Predicting = Annotated[Caller, Depends(allow("predict"))]
Labelling = Annotated[Caller, Depends(allow("label"))]
Administrating = Annotated[Caller, Depends(allow())]
Known = Annotated[Caller, Depends(allow("predict", "label"))]


def _annotator(request: HTTPConnection) -> str:
    """Several people may label on one machine: they tell their names themselves."""
    name = unquote(request.headers.get(ANNOTATOR_HEADER, "")).strip()
    fits = 0 < len(name) <= _LONGEST_NAME and name.isprintable()
    return f"local:{name}" if fits else "local"


def _check_local(request: HTTPConnection) -> None:
    if not _is_direct(request):
        raise refuse(
            403,
            "Without tokens this server answers only who talks to it directly on its own machine, "
            "and this request came from elsewhere or through a proxy. Create a token first with "
            "`attakit token create NAME --role ROLE --folder FOLDER`, or talk to the server "
            "directly.",
        )
    host = _host_name(request.headers.get("host", ""))
    if not is_loopback(host):
        raise refuse(
            403,
            "Without tokens this server answers only under the name of this machine, such as "
            "localhost. Create a token to use another name.",
        )
    if request.scope["method"] not in _SAFE:
        check_origin(request)


def _is_direct(request: HTTPConnection) -> bool:
    """Whether someone on this machine sent it; through a proxy it could be anybody."""
    peer = request.client.host if request.client else ""
    names = request.headers.keys()
    passed_on = any(name in _PASSED_ON or name.startswith("x-forwarded-") for name in names)
    return is_loopback(peer) and not passed_on


def check_origin(request: HTTPConnection) -> None:
    """Refuse what a page of another site sent."""
    origin = request.headers.get("origin")
    # Compared as text: what is no address at all is foreign too.
    own = {f"{scheme}://{request.headers.get('host')}" for scheme in ("http", "https")}
    if (origin is not None and origin not in own) or request.headers.get("sec-fetch-site") in (
        "cross-site",
        "same-site",
    ):
        raise refuse(403, "The request comes from another site. Use the pages of this server.")


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""
