"""KnownTokens: valid tokens in memory, so that no request waits for the database."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anyio import CapacityLimiter, Lock, move_on_after, to_thread

from attakit.errors import StateError
from attakit.service.storage.rows import Role
from attakit.service.storage.tokens import TokenStore, hash_token

log = logging.getLogger(__name__)

FRESH_SECONDS = 1.0  # a revoked token works for this time
_NEW_SECONDS = 0.1  # a new token is unknown for this time
_PATIENCE = 0.5  # seconds that a request waits for a slow database
_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Snapshot:
    at: float
    owners: Mapping[str, tuple[str, Role]]  # by the hash of the token

    @property
    def roles(self) -> dict[str, Role]:
        return dict(self.owners.values())


class KnownTokens:
    """A copy of the valid tokens, at most a second old while the database answers.

    If it does not answer, the last copy counts, so that predictions continue. `ticks` returns
    monotonic seconds. `also` reads other data that must be as fresh as the tokens.
    """

    def __init__(
        self,
        store: TokenStore,
        ticks: Callable[[], float] = time.monotonic,
        *,
        also: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._also = also
        self._ticks = ticks
        self._copy: _Snapshot | None = None
        self._retry_at = float("-inf")
        self._lock = Lock()
        self._one = CapacityLimiter(1)

    async def update(self, token: str | None = None) -> None:
        """Read the tokens again if the copy is old, or if `token` may be newer than the copy."""
        age = FRESH_SECONDS if token is None or self.find(token) else _NEW_SECONDS
        if self._is_fresh(age) or (self._copy and self._ticks() < self._retry_at):
            return
        with move_on_after(_PATIENCE if self._copy else None):
            async with self._lock:
                if not self._is_fresh(age):
                    await to_thread.run_sync(self.read, limiter=self._one, abandon_on_cancel=True)
            return
        self._retry_at = self._ticks() + _RETRY_SECONDS

    def read(self) -> None:
        """Copy the tokens. If that fails, keep the last copy; raise if there is none."""
        now = self._ticks()
        try:
            copied = _Snapshot(now, self._store.valid())
            self._also()
        except StateError as error:
            if self._copy is None:
                raise
            self._retry_at = self._ticks() + _RETRY_SECONDS
            log.error("cannot read the tokens, using the last known ones: %s", error)
            return
        # Its age counts from before the read, even if reading took long.
        self._copy = copied

    def forget(self) -> None:
        """Drop the copy, so that a change of tokens counts at once."""
        self._copy = None

    def find(self, token: str) -> tuple[str, Role] | None:
        """Return a token's owner and role; None if it is not valid."""
        return None if self._copy is None else self._copy.owners.get(hash_token(token))

    def role(self, name: str) -> Role | None:
        """Return the role of a token's owner; None if the token is not valid."""
        return None if self._copy is None else self._copy.roles.get(name)

    def _is_fresh(self, age: float) -> bool:
        return self._copy is not None and self._ticks() - self._copy.at < age
