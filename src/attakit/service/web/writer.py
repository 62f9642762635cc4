"""Keep what was served, without letting anyone wait for the disk."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from attakit.service.storage.records import Served

log = logging.getLogger(__name__)

_CAPACITY = 20_000
_BYTES = 256_000_000
_AT_ONCE = 500
_RETRY_SECONDS = (0.1, 0.5, 2.0)


class Keeps(Protocol):
    """Where samples are kept for good."""

    def add(self, served: Sequence[Served]) -> None: ...


class SampleWriter:
    """A thread that writes served samples in bulk, in the order they were served.

    Parameters
    ----------
    store
        Where to.
    capacity, capacity_bytes
        Most samples that may wait, and most bytes of them; further ones are turned away.
    retry_seconds
        Pauses after failures; the last one is repeated.

    Examples
    --------
    >>> class List(list):
    ...     add = list.extend
    >>> store = List()
    >>> with SampleWriter(store) as writer:
    ...     writer.put([Served("a", b"", 0, 1, 0.9, 0.1, 0.0)])
    True
    >>> [served.sample for served in store]
    ['a']
    """

    def __init__(
        self,
        store: Keeps,
        *,
        capacity: int = _CAPACITY,
        capacity_bytes: int = _BYTES,
        retry_seconds: Sequence[float] = _RETRY_SECONDS,
    ) -> None:
        self._store = store
        self._capacity = capacity
        self._capacity_bytes = capacity_bytes
        self._retry_seconds = retry_seconds
        self._changed = threading.Condition()
        self._waiting: dict[str, Served] = {}  # in order
        self._bytes = 0
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="sample writer", daemon=True)
        self._thread.start()

    def put(self, served: Sequence[Served]) -> bool:
        """Have samples written; False if too many wait already and these are not kept."""
        size = sum(len(one.content or b"") for one in served)
        with self._changed:
            room = (
                len(self._waiting) + len(served) <= self._capacity
                and self._bytes + size <= self._capacity_bytes
            )
            if self._closed or not room:
                return False
            self._waiting.update((one.sample, one) for one in served)
            self._bytes += size
            self._changed.notify_all()
        return True

    def find(self, sample: str) -> Served | None:
        """A sample that waits to be written."""
        with self._changed:
            return self._waiting.get(sample)

    @property
    def waiting(self) -> int:
        """Samples that are not written yet."""
        with self._changed:
            return len(self._waiting)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until what waits now is written; whether it is."""
        with self._changed:
            wanted = set(self._waiting)
            return self._changed.wait_for(lambda: wanted.isdisjoint(self._waiting), timeout)

    def close(self) -> None:
        """Write what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    def __enter__(self) -> SampleWriter:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _work(self) -> None:
        failures = 0
        while batch := self._next():
            try:
                self._store.add(batch)
            except Exception:
                log.exception("samples could not be written", extra={"samples": len(batch)})
                failures += 1
                if self._closed and failures > len(self._retry_seconds):
                    return
                pauses = self._retry_seconds
                time.sleep(pauses[min(failures, len(pauses)) - 1])
                continue
            failures = 0
            self._done(batch)

    def _next(self) -> list[Served]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return [one for one, _ in zip(self._waiting.values(), range(_AT_ONCE), strict=False)]

    def _done(self, batch: Sequence[Served]) -> None:
        with self._changed:
            for one in batch:
                del self._waiting[one.sample]
                self._bytes -= len(one.content or b"")
            self._changed.notify_all()
