"""Authentication and authorisation: tokens, sessions, and protection against other sites."""

from __future__ import annotations

import time
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from anyio import to_thread
from fastapi import Depends, Security
from fastapi.security import APIKeyCookie, HTTPBearer
from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from attakit.service.storage.rows import Role
from attakit.service.storage.storage import KeyValueStore
from attakit.service.storage.tokens import TokenStore
from attakit.service.web.connections import CALLER
from attakit.service.web.errors import refuse
from attakit.service.web.known_tokens import KnownTokens
from attakit.service.web.local import SAFE_METHODS, check_local, check_origin
from attakit.service.web.sessions import COOKIE, Sessions
from attakit.service.web.wrong_tokens import WrongTokens

CSRF_HEADER = "X-CSRF-Token"
ANNOTATOR_HEADER = "X-Annotator"

REFUSAL = "refusal"  # the error of a request that must not be answered, in the state of its scope
NEEDS_TOKEN = "This needs a token: send 'Authorization: Bearer TOKEN', or log in."

_UNKNOWN_TOKEN = "The token is unknown or was revoked. Ask for a new one."
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Caller:
    """The person or program that sent a request."""

    name: str
    role: Role
    by: Literal["token", "session", "local"]
    csrf: str | None = None  # for the pages of a session

    @property
    def open(self) -> bool:
        """True without a log-in, so that people enter their names themselves."""
        return self.csrf is None


class Guard:
    """Identifies callers, by a token or a session.

    On an `is_open` server, the user who runs it may do everything without a token. Then a request
    must come from that user, on this machine and without a proxy, because behind a proxy it could
    come from anywhere. Its host must be this machine, so that no other web page can reach the
    server under its own name (DNS rebinding).

    `shared` means that other servers use the same database and count wrong tokens together. `clock`
    returns the time of day for sessions, `ticks` monotonic seconds for limits.
    """

    def __init__(
        self,
        tokens: TokenStore,
        key_values: KeyValueStore,
        *,
        is_open: bool,
        shared: bool = False,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.sessions = Sessions(key_values, clock=clock)
        self._tokens = KnownTokens(tokens, ticks, also=self.sessions.refresh)
        self._is_open = is_open
        self._wrong = WrongTokens(key_values if shared else None, clock=clock, ticks=ticks)

    async def identify(self, request: HTTPConnection) -> Caller | None:
        """Return the caller; None if unknown. Raise if the request must not be answered."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        bearer = token.strip() if scheme.lower() == "bearer" else None
        await self._tokens.update(bearer)
        if bearer is not None:
            found = self._tokens.find(bearer)
            if found is None:
                raise refuse(401, _UNKNOWN_TOKEN)
            return Caller(*found, "token")
        visitor = self._visitor(request)
        if visitor is None and self._is_open:
            check_local(request)
            return Caller(_annotator(request), "admin", "local")
        return visitor

    def forget(self) -> None:
        """Forget the tokens, so that a change takes effect at once."""
        self._tokens.forget()

    async def log_in(self, token: str, address: str) -> str:
        """Return the cookie of a new session; raise for a wrong token.

        Only wrong tokens are limited, so that other clients at an address cannot lock people out.
        """
        await self._tokens.update(token.strip())
        found = self._tokens.find(token.strip())
        if found is None:
            seconds = await to_thread.run_sync(self._wrong.wait, address)
            if seconds:
                raise refuse(429, "Too many wrong tokens. Wait a moment.", retry_after=seconds)
            raise refuse(401, _UNKNOWN_TOKEN)
        return await to_thread.run_sync(self.sessions.issue, found[0])

    def _visitor(self, request: HTTPConnection) -> Caller | None:
        cookie = request.cookies.get(COOKIE)
        session = self.sessions.read(cookie) if cookie else None
        # The role is looked up on each request, so that a revoked token ends its sessions.
        role = None if session is None else self._tokens.role(session.name)
        if session is None or role is None:
            return None
        if request.scope["method"] not in SAFE_METHODS:
            check_origin(request)
            if not self.sessions.is_csrf(session, request.headers.get(CSRF_HEADER, "")):
                raise refuse(403, f"The header {CSRF_HEADER} is missing or wrong. Reload the page.")
        return Caller(session.name, role, "session", self.sessions.csrf(session))


def find_caller(scope: Scope) -> Caller | None:
    """Return who sent a request, or None; raise if the request must not be answered."""
    refusal = scope["state"].get(REFUSAL)
    if refusal is not None:
        raise refusal
    caller: Caller | None = scope["state"].get(CALLER)
    return caller


def require(scope: Scope, allowed: Set[Role]) -> Caller:
    """Return who sent a request; raise unless they have one of the roles."""
    caller = find_caller(scope)
    if caller is None:
        raise refuse(401, NEEDS_TOKEN)
    if caller.role not in allowed:
        raise refuse(
            403,
            f"The role {caller.role!r} does not allow this. It needs "
            f"{' or '.join(sorted(allowed))}. Use another token.",
        )
    return caller


def allow(*roles: Role) -> Callable[..., Any]:
    """Return a dependency that returns the caller and requires one of the roles."""
    allowed: Set[Role] = {*roles, "admin"}

    async def check(
        request: Request,
        _bearer: Annotated[object, Security(_BEARER)],
        _cookie: Annotated[object, Security(_SESSION)],
    ) -> Caller:
        return require(request.scope, allowed)

    return check


_BEARER = HTTPBearer(auto_error=False, description="A token created with `attakit token`")
_SESSION = APIKeyCookie(name=COOKIE, auto_error=False, description="Set by the log-in page")

Predicting = Annotated[Caller, Depends(allow("predict"))]
Labelling = Annotated[Caller, Depends(allow("label"))]
Administrating = Annotated[Caller, Depends(allow())]
Known = Annotated[Caller, Depends(allow("predict", "label"))]


def _annotator(request: HTTPConnection) -> str:
    """Return the name that a local annotator gives. Several people may label on one machine."""
    name = unquote(request.headers.get(ANNOTATOR_HEADER, "")).strip()
    fits = 0 < len(name) <= _LONGEST_NAME and name.isprintable()
    return f"local:{name}" if fits else "local"
