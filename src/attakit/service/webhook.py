"""Tell another program that there are new questions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

import httpx2

from attakit.service.storage.questions import QuestionStore
from attakit.service.storage.storage import KeyValueStore

log = logging.getLogger(__name__)

_PAUSES = (1.0, 5.0, 30.0, 120.0)  # seconds between attempts
_TIMEOUT = 10.0
_TOLD = "webhook_told"  # the fact which question was told last


class Webhook:
    """A thread that looks for new questions, and posts how many there are to an address.

    The body is {"event": "questions", "new": …, "newest": …, "open": …}. What could not be
    delivered is told together with what came since, also after a restart; nothing ever waits for
    the other side. Questions from before the first start with a webhook are never told.

    Parameters
    ----------
    url
        Where to; http or https.
    questions, facts
        Of the storage.
    every
        Seconds between two looks.
    pauses
        Seconds between attempts that fail; the last one is repeated.
    send
        Posts a body to an address and raises if it was not taken.
    """

    def __init__(
        self,
        url: str,
        questions: QuestionStore,
        facts: KeyValueStore,
        *,
        every: float = 2.0,
        pauses: Sequence[float] = _PAUSES,
        send: Callable[[str, dict[str, object]], None] | None = None,
    ) -> None:
        self._url = url
        self._host = urlsplit(url).hostname  # all of the address that may be logged
        self._questions = questions
        self._facts = facts
        self._every = every
        self._pauses = pauses
        self._send = send or _post
        self._kept: int | None = facts.get(_TOLD)
        self._told = self._newest() if self._kept is None else self._kept
        self._keep()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="webhook", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, without waiting for the other side."""
        self._ending.set()
        self._thread.join(timeout=1.0)

    def _work(self) -> None:
        failures = 0
        while not self._ending.wait(self._pause(failures)):
            try:
                self._tell()
                failures = 0
            except Exception as error:  # whatever the network or the database does
                failures += 1
                told = {"host": self._host, "attempt": failures, "error": _explain(error)}
                log.warning("webhook failed", extra=told)

    def _pause(self, failures: int) -> float:
        return self._pauses[min(failures, len(self._pauses)) - 1] if failures else self._every

    def _tell(self) -> None:
        newest = self._newest()
        if newest > self._told:
            counts = self._questions.counts()
            new = newest - self._told
            body = {"event": "questions", "new": new, "newest": newest, "open": counts.open}
            self._send(self._url, body)
            self._told = newest
        self._keep()

    def _keep(self) -> None:
        """Note what was told; apart from telling, so that a busy database lets nothing be told
        twice."""
        if self._kept != self._told:
            self._facts.set(_TOLD, self._told)
            self._kept = self._told

    def _newest(self) -> int:
        recent = self._questions.recent(1)
        return recent[0].question if recent else 0


def _post(url: str, body: dict[str, object]) -> None:
    httpx2.post(url, json=body, timeout=_TIMEOUT, follow_redirects=False).raise_for_status()


def _explain(error: Exception) -> str:
    """What went wrong, without the address: that may hold a password or a token."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered with status {error.response.status_code}"
    return f"{type(error).__name__}: {error}"
