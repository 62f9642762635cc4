"""Worker: the base class of every background thread in the service."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

log = logging.getLogger(__name__)


class Worker(ABC):
    """A daemon thread that calls `run_once` again and again until it is stopped.

    An exception in `run_once` is logged, and the thread continues after a pause.

    Parameters
    ----------
    name
        The thread's name; log lines mention it.
    pause
        Seconds to wait before each run. None waits until `wake` is called.
    retry_pauses
        Seconds to wait after the first, second, … failure in a row; the last one is repeated. If
        empty, failures do not change the pause.

    Examples
    --------
    >>> class Counter(Worker):
    ...     runs = 0
    ...
    ...     def run_once(self):
    ...         self.runs += 1
    ...         if self.runs == 3:
    ...             self.end()
    >>> counter = Counter("counter", pause=0.0)
    >>> counter.start()
    >>> counter.join()
    >>> counter.runs
    3
    """

    def __init__(
        self, name: str, *, pause: float | None = 0.0, retry_pauses: Sequence[float] = ()
    ) -> None:
        self.name = name
        self.pause = pause
        self.retry_pauses = retry_pauses
        self.failures = 0  # in a row
        self._stopping = threading.Event()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def run_once(self) -> None:
        """Do one piece of work."""

    def start(self) -> None:
        """Start the thread if it is not running. A stopped worker starts again."""
        if self._thread is None or not self._thread.is_alive():
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, and wait until it does."""
        self.end()
        self.join()

    def wake(self) -> None:
        """End the current pause, or skip the next one."""
        self._awake.set()

    def end(self) -> None:
        """Ask the thread to end, without waiting for it."""
        self._stopping.set()
        self.wake()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, at most `timeout` seconds."""
        if self._thread is not None:
            self._thread.join(timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def is_done(self) -> bool:
        """True if the thread may end now. A worker with a queue empties it first."""
        return self._stopping.is_set()

    def on_failure(self, error: Exception) -> None:
        """Report an exception that `run_once` raised."""
        log.error("the %s failed", self.name, exc_info=error)

    def _run(self) -> None:
        self._wait()
        while not self.is_done():
            try:
                self.run_once()
                self.failures = 0
            except Exception as error:
                self.failures += 1
                self.on_failure(error)
            self._wait()

    def _wait(self) -> None:
        pause = self.pause
        if self.failures and self.retry_pauses:
            pause = self.retry_pauses[min(self.failures, len(self.retry_pauses)) - 1]
        if pause != 0:
            self._awake.wait(pause)
            self._awake.clear()
