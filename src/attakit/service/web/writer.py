"""Store served samples in the background, so that no request waits for the disk."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from itertools import islice

from attakit.service.storage.rows import ServedSample
from attakit.service.storage.samples import SampleStore
from attakit.service.web.health import Health
from attakit.service.worker import Worker

log = logging.getLogger(__name__)

_CAPACITY = 20_000
_BYTES = 256_000_000
_BATCH = 500
_GATHER_SECONDS = 0.25  # a transaction costs as much as a request, so it is shared by many samples
_RETRY_PAUSES = (0.1, 0.5, 2.0)
_SAMPLES = "samples"
_WAITING = (
    "Samples cannot be stored and wait in memory. Predictions continue. The log says why, and "
    "/metrics says how many wait."
)


class SampleWriter(Worker):
    """A thread that writes served samples in bulk, in the order they were served.

    `put` rejects samples beyond the capacity of the queue.

    Examples
    --------
    >>> class List(list):
    ...     add = list.extend
    >>> store = List()
    >>> with SampleWriter(store) as writer:
    ...     writer.put([ServedSample("a", b"", 0, 1, 0.9, 0.1, 0.0)])
    True
    >>> [served.sample for served in store]
    ['a']
    """

    def __init__(
        self,
        store: SampleStore,
        *,
        capacity: int = _CAPACITY,
        capacity_bytes: int = _BYTES,
        gather_seconds: float = _GATHER_SECONDS,
        retry_pauses: Sequence[float] = _RETRY_PAUSES,
        health: Health | None = None,
    ) -> None:
        super().__init__("sample writer", retry_pauses=retry_pauses)
        self._store = store
        self._health = health
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._gather_seconds = gather_seconds
        self._changed = threading.Condition()
        self._hurry = threading.Event()  # ends the gathering time
        self._waiting: dict[str, ServedSample] = {}  # in order
        self._bytes = 0

    def put(self, served: Sequence[ServedSample]) -> bool:
        """Add samples to the queue; False if it is full and they are not stored."""
        size = sum(len(one.content or b"") for one in served)
        with self._changed:
            fits = (
                len(self._waiting) + len(served) <= self._capacity
                and self._bytes + size <= self._capacity_bytes
            )
            if self._stopping.is_set() or not fits:
                return False
            if not self._waiting:  # otherwise the thread gathers or writes already
                self._changed.notify_all()
            self._waiting.update((one.sample, one) for one in served)
            self._bytes += size
            if len(self._waiting) >= _BATCH:
                self._hurry.set()
        return True

    def find(self, sample: str) -> ServedSample | None:
        """Return a sample that is still in the queue."""
        with self._changed:
            return self._waiting.get(sample)

    @property
    def waiting(self) -> int:
        """The number of samples that are not written yet."""
        with self._changed:
            return len(self._waiting)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until the samples in the queue are written; returns True if they are."""
        with self._changed:
            wanted = set(self._waiting)
            self._hurry.set()
            return self._changed.wait_for(lambda: wanted.isdisjoint(self._waiting), timeout)

    def end(self) -> None:
        """Accept no more samples, and end the thread once the queue is empty."""
        with self._changed:
            self.failures = 0  # the last samples get all attempts
            super().end()
            self._hurry.set()
            self._changed.notify_all()

    def is_done(self) -> bool:
        gave_up = self.failures > len(self.retry_pauses)
        return self._stopping.is_set() and (gave_up or not self.waiting)

    def run_once(self) -> None:
        """Write the next samples of the queue; wait for them if there are none."""
        if batch := self._next():
            self._store.add(batch)
            self._remove(batch)
            if self._health is not None:
                self._health.recover(_SAMPLES)

    def on_failure(self, error: Exception) -> None:
        details = {"samples": self.waiting}
        log.error("samples could not be written", exc_info=error, extra=details)
        if self._health is not None:
            self._health.fail(_SAMPLES, _WAITING)

    def _next(self) -> list[ServedSample]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
        if not self._stopping.is_set():
            self._hurry.wait(self._gather_seconds)
            self._hurry.clear()
        with self._changed:
            return list(islice(self._waiting.values(), _BATCH))

    def _remove(self, batch: Sequence[ServedSample]) -> None:
        with self._changed:
            for one in batch:
                del self._waiting[one.sample]
                self._bytes -= len(one.content or b"")
            self._changed.notify_all()
