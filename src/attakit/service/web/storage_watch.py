"""StorageWatch: a thread that checks that folder and database are writable."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from attakit.errors import StateError
from attakit.service.storage import Storage
from attakit.service.web.health import Fault, Health
from attakit.service.worker import Worker

log = logging.getLogger(__name__)

PAUSE = 5.0  # seconds between two checks
_PROBE = ".probe"
_SIZE = 65_536  # bytes; a full disk may have room for a few
_CHECKED = "storage_checked"
_DATABASE = (
    "The database is not writable. Predictions continue and samples wait in memory. Answers are "
    "refused. The log says why."
)
_FOLDER = (
    "The folder of the service is not writable: {reason}. Predictions continue, but neither "
    "versions nor checkpoints can be saved. Free space, or make the folder writable."
)


class StorageWatch(Worker):
    """Writes to folder and database every few seconds, and reports what fails to `health`.

    Requests would notice it too late, or not at all, because predictions never wait for the
    storage. When a fault ends, it becomes an alarm in the event log.
    """

    def __init__(
        self, storage: Storage, folder: Path, health: Health, clock: Callable[[], float]
    ) -> None:
        super().__init__("storage watch", pause=PAUSE)
        self._storage = storage
        self._folder = folder
        self._health = health
        self._clock = clock

    def run_once(self) -> None:
        """Check the folder, then the database."""
        self._try("folder", self._write_file)
        self._health.ask()
        try:
            self._try("database", self._write_row)
        finally:
            self._health.answered()

    def _try(self, what: str, write: Callable[[], None]) -> None:
        try:
            write()
        except (OSError, StateError) as error:
            log.error("the %s cannot be written: %s", what, error)
            reason = error.strerror if isinstance(error, OSError) else None
            text = _DATABASE if reason is None else _FOLDER.format(reason=reason)
            self._health.fail(what, text)
        else:
            ended = self._health.recover(what)
            if ended is not None:
                self._record(ended)

    def _write_file(self) -> None:
        path = self._folder / _PROBE
        try:
            with path.open("wb") as file:
                file.write(bytes(_SIZE))
                os.fsync(file.fileno())
        finally:
            path.unlink(missing_ok=True)

    def _write_row(self) -> None:
        self._storage.key_values.set(_CHECKED, self._clock())

    def _record(self, fault: Fault) -> None:
        """Record a fault that has ended, for people who look later."""
        seconds = max(0.0, self._clock() - fault.since)
        text = f"Fixed after {seconds:.0f} s: {fault.text}"
        log.info("the %s can be written again", fault.what)
        self._storage.events.add("alarm", "server", what="storage", text=text)
