"""Who is logged in, kept in a signed cookie; the key to sign with stays in the database."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Protocol

COOKIE = "attakit_session"
LASTING = 12 * 3600.0  # seconds

_SECRET = "session_secret"
_ENDED = "ended_sessions"


class Remembers(Protocol):
    """Single values by name."""

    def get(self, name: str, default: Any = None) -> Any: ...

    def set(self, name: str, value: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Session:
    """A person who logged in with a token."""

    name: str  # of the token
    until: float
    number: str  # nobody else's


class Sessions:
    """Issues cookies, and reads those that are ours, not too old and not ended.

    Examples
    --------
    >>> class Memory(dict):
    ...     set = dict.__setitem__
    >>> sessions = Sessions(Memory())
    >>> cookie = sessions.issue("ann")
    >>> sessions.read(cookie).name, sessions.read(cookie + "x")
    ('ann', None)
    """

    def __init__(self, facts: Remembers, *, clock: Callable[[], float] = time.time) -> None:
        self._facts = facts
        self._clock = clock
        if facts.get(_SECRET) is None:
            facts.set(_SECRET, secrets.token_hex(32))
        self._secret = bytes.fromhex(facts.get(_SECRET))
        self._ended: dict[str, float] = dict(facts.get(_ENDED, {}))

    def issue(self, name: str) -> str:
        """The cookie of a new session."""
        session = Session(name, self._clock() + LASTING, secrets.token_hex(16))
        content = json.dumps(asdict(session)).encode().hex()  # no letter that cookies would quote
        return f"{content}.{self._sign('session', content)}"

    def read(self, cookie: str) -> Session | None:
        """The session of a cookie, if it holds."""
        content, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign("session", content).encode()):
            return None
        try:
            session = Session(**json.loads(bytes.fromhex(content)))
        except (ValueError, TypeError):
            return None
        ended = session.number in self._ended or session.until < self._clock()
        return None if ended else session

    def csrf(self, session: Session) -> str:
        """What a page must send with every change: another site cannot know it."""
        return self._sign("csrf", session.number)

    def is_csrf(self, session: Session, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.csrf(session).encode())

    def end(self, session: Session) -> None:
        """Let a session hold no longer, even if its cookie was copied."""
        now = self._clock()
        kept = {number: until for number, until in self._ended.items() if until >= now}
        self._ended = {**kept, session.number: session.until}
        self._facts.set(_ENDED, self._ended)

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).hexdigest()
