"""Limits: requests per client, and the size and duration of request bodies."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from attakit.service.web.buckets import TokenBuckets
from attakit.service.web.connections import CALLER
from attakit.service.web.errors import problem, refuse
from attakit.service.web.security import NEEDS_TOKEN, REFUSAL, Caller, Guard

PROBES = ("/healthz", "/readyz")  # they read no body and are always answered
UPLOADS = ("/v1/predict", "/v1/import/")
_FORMS = ("/login", "/logout")  # the only bodies that are read from unknown callers
_LONGEST_FORM = 10_000  # bytes
_SMALL = 100_000  # bytes of a request to an address without uploads
_FULL = "The server is busy with other large requests. Try again in a moment."


class ByteLimit:
    """A limit on the bytes of request bodies that are in memory at the same time.

    Only received bytes count, not announced ones. Otherwise a client could block others by
    announcing a large body and sending nothing. A client may hold `share` of the bytes.

    Examples
    --------
    >>> limit = ByteLimit(10, share=8)
    >>> limit.take("ann", 8), limit.take("ann", 1), limit.take("bob", 1), limit.take("bob", 2)
    (True, False, True, False)
    """

    def __init__(self, limit: int, *, share: int) -> None:
        self._free = limit
        self._share = share
        self._held: Counter[str] = Counter()

    def free(self, client: str) -> int:
        """Return the bytes that a client may still use."""
        return min(self._free, self._share - self._held[client])

    def take(self, client: str, count: int) -> bool:
        """Reserve bytes; returns True if there were enough."""
        if count > self.free(client):
            return False
        self._free -= count
        self._held[client] += count
        return True

    def give_back(self, client: str, count: int) -> None:
        """Free bytes that were reserved."""
        self._free += count
        self._held[client] -= count
        if not self._held[client]:
            del self._held[client]


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """How large a body may be, and how long it may take.

    An upload may have `upload` bytes. `held` limits the bodies of all requests that are being
    answered. A body may take `seconds`, and a second more for each `rate` bytes.
    """

    upload: int
    held: ByteLimit
    seconds: float
    rate: float


class Limits:
    """Middleware that identifies callers, and rejects requests beyond the limits.

    The caller is identified before any part of a body is read. Bodies of unknown callers are not
    read, except the short forms of the log-in page. So clients without a token cannot use up the
    memory for bodies. `known` are the buckets of callers with a token, `unknown` those of other
    addresses.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        guard: Guard,
        known: TokenBuckets,
        unknown: TokenBuckets,
        bodies: BodyLimits,
    ) -> None:
        self.app = app
        self.guard = guard
        self.known = known
        self.unknown = unknown
        self.bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
            return
        caller = await self._identify(scope)
        client = _client(scope, caller)
        try:
            self._check_rate(client, caller)
            body = self._body(scope, receive, client, caller)
        except HTTPException as error:
            answer = problem(error.status_code, error.detail, dict(error.headers or {}))
            await answer(scope, receive, send)
            return
        try:
            await self.app(scope, body.receive, send)
        finally:
            body.close()

    async def _identify(self, scope: Scope) -> Caller | None:
        """Store in the scope who sent the request, or why it must not be answered."""
        state = scope.setdefault("state", {})
        try:
            state[CALLER] = await self.guard.identify(HTTPConnection(scope))
        except HTTPException as error:
            state[CALLER], state[REFUSAL] = None, error
        caller: Caller | None = state[CALLER]
        return caller

    def _check_rate(self, client: str, caller: Caller | None) -> None:
        seconds = (self.unknown if caller is None else self.known).wait(client)
        if seconds:
            wait = max(1, round(seconds))
            sentence = f"Too many requests. Wait {wait} s before the next one."
            raise refuse(429, sentence, retry_after=seconds)

    def _body(self, scope: Scope, receive: Receive, client: str, caller: Caller | None) -> _Body:
        # Forms need no common limit: there are at most as many as connections.
        is_form = scope["path"] in _FORMS
        if caller is None and not is_form:
            refusal = scope["state"].get(REFUSAL) or refuse(401, NEEDS_TOKEN)
            return _Body(receive, 0, self.bodies, refusal=refusal)
        limit = _LONGEST_FORM if is_form else self._largest(scope["path"])
        announced = _announced(scope)
        if announced > limit:
            raise refuse(413, _too_large(limit))
        if not is_form and announced > self.bodies.held.free(client):
            raise refuse(503, _FULL, retry_after=1)
        return _Body(receive, limit, self.bodies, client=None if is_form else client)

    def _largest(self, path: str) -> int:
        return self.bodies.upload if path.startswith(UPLOADS) else min(_SMALL, self.bodies.upload)


class _Body:
    """A request body that is cut off if it is too large or too slow.

    Its bytes count for `client`, if given. If there is an error `refusal` to raise, it is not read
    at all.
    """

    def __init__(
        self,
        receive: Receive,
        limit: int,
        limits: BodyLimits,
        *,
        client: str | None = None,
        refusal: HTTPException | None = None,
    ) -> None:
        self._receive = receive
        self._limit = limit
        self._client = client
        self._limits = limits
        self._refusal = refusal
        self._began: float | None = None
        self._complete = False
        self._size = 0  # received bytes, in memory until the answer is sent

    async def receive(self) -> Message:
        if self._complete:  # the app waits for the client to disconnect
            return await self._receive()
        if self._refusal is not None:
            raise self._refusal
        try:
            async with asyncio.timeout_at(self._deadline()):
                message = await self._receive()
        except TimeoutError:
            raise self._too_slow() from None
        self._take(len(message.get("body", b"")))
        self._complete = not message.get("more_body", False)
        return message

    def close(self) -> None:
        """Free the memory that the body has taken."""
        if self._client is not None:
            self._limits.held.give_back(self._client, self._size)
        self._size = 0

    def _take(self, count: int) -> None:
        if self._size + count > self._limit:
            raise refuse(413, _too_large(self._limit))
        if self._client is not None and not self._limits.held.take(self._client, count):
            raise refuse(503, _FULL, retry_after=1)
        self._size += count

    def _deadline(self) -> float:
        now = asyncio.get_running_loop().time()
        self._began = now if self._began is None else self._began
        return self._began + self._limits.seconds + self._size / self._limits.rate

    def _too_slow(self) -> HTTPException:
        limits = self._limits
        sentence = (
            f"The body arrived too slowly. It may take {limits.seconds:g} s, and one more second "
            f"for each {limits.rate / 1000:g} kB. Send it again, or in smaller parts."
        )
        return HTTPException(408, sentence, headers={"Connection": "close"})


def _client(scope: Scope, caller: Caller | None) -> str:
    """Return the key for counting requests: the token, or else the address."""
    address = scope["client"][0] if scope.get("client") else "unknown"
    # Local users choose their own names.
    return address if caller is None or caller.by == "local" else f"token {caller.name}"


def _announced(scope: Scope) -> int:
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


def _too_large(limit: int) -> str:
    return f"The request is larger than {limit / 1e6:g} MB. Send fewer inputs at once."
