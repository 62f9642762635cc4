"""Notify another program about new questions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import httpx2

from attakit.service.storage.claims import Claim
from attakit.service.storage.questions import QuestionStore
from attakit.service.storage.storage import KeyValueStore
from attakit.service.worker import Worker

log = logging.getLogger(__name__)

_RETRY_PAUSES = (1.0, 5.0, 30.0, 120.0)  # seconds between attempts
_TIMEOUT = 10.0
_STOP_SECONDS = 1.0
_LAST_SENT = "webhook_told"  # key of the newest question that was sent


class Webhook(Worker):
    """A thread that checks for new questions, and posts their number to an address.

    The body is {"event": "questions", "new": …, "newest": …, "open": …}. If a delivery fails, the
    next one includes its questions, also after a restart. Nothing else waits for the receiver.
    Questions from before the first start with a webhook are never sent.

    Parameters
    ----------
    url
        The receiver's address; http or https.
    questions, key_values
        The service's stores for questions and for single values.
    every
        Seconds between two checks.
    retry_pauses
        Seconds to wait after the first, second, … failure in a row; the last one is repeated.
    send
        A function that posts a body to an address, and raises if the receiver did not accept it.
    role
        The role of the one that sends, if several servers have a webhook.
    """

    def __init__(
        self,
        url: str,
        questions: QuestionStore,
        key_values: KeyValueStore,
        *,
        every: float = 2.0,
        retry_pauses: Sequence[float] = _RETRY_PAUSES,
        send: Callable[[str, dict[str, object]], None] | None = None,
        role: Claim | None = None,
    ) -> None:
        super().__init__("webhook", pause=every, retry_pauses=retry_pauses)
        self._url = url
        self._host = urlsplit(url).hostname  # the only part of the address that may be logged
        self._questions = questions
        self._key_values = key_values
        self._send = send or _post
        self._role = role
        self._leads = role is None
        self._saved: int | None = key_values.get(_LAST_SENT)
        self._last_sent = self._newest() if self._saved is None else self._saved
        self._save()

    def stop(self) -> None:
        """End the thread, without waiting for a slow receiver."""
        self.end()
        self.join(_STOP_SECONDS)
        if self._role is not None:
            self._role.release()

    def run_once(self) -> None:
        """Send the number of new questions, if there are any and no other server does."""
        if self._role is not None and not self._role.hold():
            self._leads = False
            return
        if not self._leads:  # another server may have sent some
            self._last_sent = self._saved = self._key_values.get(_LAST_SENT, self._last_sent)
            self._leads = True
        newest = self._newest()
        if newest > self._last_sent:
            counts = self._questions.counts()
            new = newest - self._last_sent
            body = {"event": "questions", "new": new, "newest": newest, "open": counts.open}
            self._send(self._url, body)
            self._last_sent = newest
        self._save()

    def on_failure(self, error: Exception) -> None:
        details = {"host": self._host, "attempt": self.failures, "error": _explain(error)}
        log.warning("webhook failed", extra=details)

    def _save(self) -> None:
        """Record the newest question that was sent. Apart from sending, so that a busy database
        does not make the webhook send anything twice."""
        if self._saved != self._last_sent:
            self._key_values.set(_LAST_SENT, self._last_sent)
            self._saved = self._last_sent

    def _newest(self) -> int:
        recent = self._questions.recent(1)
        return recent[0].question if recent else 0


def _post(url: str, body: dict[str, object]) -> None:
    httpx2.post(url, json=body, timeout=_TIMEOUT, follow_redirects=False).raise_for_status()


def _explain(error: Exception) -> str:
    """Say what went wrong without the address, which may contain a password or a token."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered with status {error.response.status_code}"
    return f"{type(error).__name__}: {error}"
