"""The learner in a process of its own, started again whenever it dies, unless it gives up."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STABLE = 60.0  # seconds after which an earlier death is forgotten
PATIENCE = 30.0  # seconds that a turn may take to end when the service stops
GAVE_UP = 3  # exit code of a process that would end the same way if it were started again


class Supervisor:
    """Keeps one process alive until it is told to stop, or the process gives up.

    Parameters
    ----------
    work
        What the process does; sent to it, so it must be a function of a module with picklable
        arguments bound to it.
    died
        Called each time the process ends by itself, with the exit code and how often it has ended
        in a row, each time soon after its start.
    """

    def __init__(
        self,
        work: Callable[[], None],
        *,
        died: Callable[[int, int], None] = lambda _code, _in_a_row: None,
    ) -> None:
        self.work = work
        self.died = died
        self._stopping = threading.Event()
        self._process: multiprocessing.process.BaseProcess | None = None
        # Only the thread that waits for the process asks the system about it: of two that ask at
        # once, one never learns the exit code.
        self._running = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs at this moment."""
        return self._running.is_set()

    def start(self) -> None:
        """Start the process and watch over it."""
        self._thread.start()

    def stop(self) -> None:
        """Let the process finish what it is doing, then end it."""
        self._stopping.set()
        if self._process is not None and self.is_alive:
            self._process.terminate()
        self._thread.join(PATIENCE)
        if self._process is not None and self.is_alive:
            log.warning("the learner did not stop in %.0f seconds and is killed", PATIENCE)
            self._process.kill()
            self._thread.join()

    def _watch(self) -> None:
        in_a_row = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            # Spawned, not forked: a fork of a process with threads may hang.
            self._process = multiprocessing.get_context("spawn").Process(
                target=self.work, name="learner"
            )
            self._process.start()
            self._running.set()
            if self._stopping.is_set():  # stop() came while it was being started
                self._process.terminate()
            self._process.join()
            self._running.clear()
            if self._stopping.is_set():
                return
            code = self._process.exitcode or 0
            in_a_row = 1 if time.monotonic() - began > STABLE else in_a_row + 1
            self._tell(code, in_a_row)
            if code == GAVE_UP:
                log.error("the learner gave up and is not started again")
                return
            pause = min(FIRST_PAUSE * 2 ** min(in_a_row - 1, 10), LONGEST_PAUSE)
            log.error("the learner ended with code %d and is started again in %.1f s", code, pause)
            self._stopping.wait(pause)

    def _tell(self, code: int, in_a_row: int) -> None:
        try:
            self.died(code, in_a_row)
        except Exception:  # it may be the trouble that ended the process: a database that is away
            log.exception("that the learner ended cannot be told")
