"""Run the learner in its own process, and restart it when it dies."""

from __future__ import annotations

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable

from attakit.service.worker import Worker

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STABLE = 60.0  # seconds after which an earlier death no longer counts
PATIENCE = 30.0  # seconds that a turn may take to end when the service stops
GAVE_UP = 3  # exit code of a process that would fail in the same way again


class Supervisor(Worker):
    """A thread that keeps one process alive until `stop` is called, or the process gives up.

    Parameters
    ----------
    work
        The function that the process runs. It is sent to the process, so it must be a module's
        function with picklable arguments bound to it.
    died
        A callback for each unexpected end of the process. It gets the exit code and the number of
        ends in a row, each soon after the start.
    """

    def __init__(
        self,
        work: Callable[[], None],
        *,
        died: Callable[[int, int], None] = lambda _code, _in_a_row: None,
    ) -> None:
        super().__init__("supervisor")
        self.work = work
        self.died = died
        self._in_a_row = 0
        self._process: multiprocessing.process.BaseProcess | None = None
        # Only the thread that waits for the process asks the system about it. If two threads ask at
        # once, one never gets the exit code.
        self._running = threading.Event()

    @property
    def is_alive(self) -> bool:
        """True if the process runs now."""
        return self._running.is_set()

    def check_alive(self) -> bool:
        """Return True if the process runs now."""
        return self.is_alive

    def stop(self) -> None:
        """Let the process finish what it is doing, then end it."""
        self.end()
        if self._process is not None and self.is_alive:
            self._process.terminate()
        self.join(PATIENCE)
        if self._process is not None and self.is_alive:
            log.warning("the learner did not stop in %.0f seconds and is killed", PATIENCE)
            self._process.kill()
            self.join()

    def run_once(self) -> None:
        """Run the process until it ends, and decide whether and when to start it again."""
        self.pause = FIRST_PAUSE
        began = time.monotonic()
        code = self._run_process()
        if self.is_done():
            return
        self._in_a_row = 1 if time.monotonic() - began > STABLE else self._in_a_row + 1
        if code == GAVE_UP:
            log.error("the learner gave up and is not started again")
            self.end()
        else:
            self.pause = min(FIRST_PAUSE * 2 ** min(self._in_a_row - 1, 10), LONGEST_PAUSE)
            log.error(
                "the learner ended with code %d and is started again in %.1f s", code, self.pause
            )
        self.died(code, self._in_a_row)

    def _run_process(self) -> int:
        # Spawned, not forked: a fork of a process with threads may hang.
        process = multiprocessing.get_context("spawn").Process(target=self.work, name="learner")
        self._process = process
        process.start()
        self._running.set()
        if self.is_done():  # stop() was called during the start
            process.terminate()
        process.join()
        self._running.clear()
        return process.exitcode or 0
