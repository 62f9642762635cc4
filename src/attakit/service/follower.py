"""Follow the promotions: whatever version is promoted, answers from the next forward pass on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from attakit.errors import AttaError
from attakit.service.learner.candidates import SOURCE, promoted_versions
from attakit.service.predictor import Model, Predictor
from attakit.service.storage.records import Version
from attakit.service.storage.versions import VersionStore

log = logging.getLogger(__name__)

PAUSE = 0.5  # seconds between two looks


class Follower:
    """A thread that looks which version is promoted, and swaps the model of a predictor.

    A version whose file cannot be read is left alone, and the one that answers goes on; if none
    does yet, the one that was promoted before it answers, or the source model.

    Parameters
    ----------
    versions
        Where promotions are written down.
    predictor
        Answers requests.
    load
        Makes a model that is ready to answer from a version.
    unreadable
        Called with the number of a promoted version that cannot be read, once.
    """

    def __init__(
        self,
        versions: VersionStore,
        predictor: Predictor,
        load: Callable[[Version], Model],
        *,
        unreadable: Callable[[int], None] = lambda _number: None,
    ) -> None:
        self.versions = versions
        self.predictor = predictor
        self.load = load
        self.unreadable = unreadable
        self._unreadable: int | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="follower", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()
        self._thread.join()

    def look(self) -> None:
        """Swap the model, if another version is promoted than the one that answers."""
        promotion = self.versions.current()
        if promotion is None or promotion.version == self._unreadable:
            return
        if self.predictor.ready and promotion.version == self.predictor.version:
            return
        self._unreadable = None
        if not self._swap(promotion.version):
            self._unreadable = promotion.version
            if not self.predictor.ready:
                self._fall_back()
            self.unreadable(promotion.version)

    def _fall_back(self) -> None:
        for number in (*promoted_versions(self.versions), SOURCE):
            if number != self._unreadable and self._swap(number):
                return

    def _swap(self, number: int) -> bool:
        try:
            model = self.load(self.versions.get([number])[number])
        except AttaError as error:
            log.error("version %d is promoted but cannot be used: %s", number, error)
            return False
        self.predictor.swap(model, number)
        log.info("version %d answers", number)
        return True

    def _follow(self) -> None:
        while not self._stop.wait(PAUSE):
            try:
                self.look()
            except Exception:  # a database that is away for a moment must not end the watch
                log.exception("the promoted version cannot be looked up")
