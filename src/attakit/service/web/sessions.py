"""Sessions in signed cookies; the key that signs them is in the database."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256

from attakit.service.storage.storage import KeyValueStore

COOKIE = "attakit_session"
LASTING = 12 * 3600.0  # seconds

_SECRET = "session_secret"
_ENDED = "ended_sessions"


@dataclass(frozen=True, slots=True)
class Session:
    """A person who logged in with a token."""

    name: str  # name of the token
    until: float
    number: str  # random and unique


class Sessions:
    """Issues cookies, and reads those with our signature that are valid and not ended.

    Examples
    --------
    >>> class Memory(dict):
    ...     def change(self, name, change):
    ...         self[name] = change(self.get(name))
    ...         return self[name]
    >>> sessions = Sessions(Memory())
    >>> cookie = sessions.issue("ann")
    >>> sessions.read(cookie).name, sessions.read(cookie + "x")
    ('ann', None)
    """

    def __init__(
        self, key_values: KeyValueStore, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._key_values = key_values
        self._clock = clock
        # All servers of a deployment must read each other's cookies.
        self._secret = bytes.fromhex(key_values.change(_SECRET, _or_new))
        self._ended: dict[str, float] = dict(key_values.get(_ENDED, {}))

    def issue(self, name: str) -> str:
        """Return the cookie of a new session."""
        session = Session(name, self._clock() + LASTING, secrets.token_hex(16))
        content = json.dumps(asdict(session)).encode().hex()  # hex: cookies quote some characters
        return f"{content}.{self._sign('session', content)}"

    def read(self, cookie: str) -> Session | None:
        """Return the session of a cookie, if it is valid."""
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
        """Return the token that a page sends with every change; another site cannot know it."""
        return self._sign("csrf", session.number)

    def is_csrf(self, session: Session, token: str) -> bool:
        """True if a page sent the right token."""
        return hmac.compare_digest(token.encode(), self.csrf(session).encode())

    def end(self, session: Session) -> None:
        """Make a session invalid, even if its cookie was copied."""
        now = self._clock()

        def add(before: dict[str, float] | None) -> dict[str, float]:
            valid = {number: until for number, until in (before or {}).items() if until >= now}
            return {**valid, session.number: session.until}

        self._ended = self._key_values.change(_ENDED, add)

    def refresh(self) -> None:
        """Read which sessions have ended on other servers."""
        self._ended = dict(self._key_values.get(_ENDED, {}))

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).hexdigest()


def _or_new(secret: str | None) -> str:
    return secret or secrets.token_hex(32)
