"""Follow promotions: the next forward pass uses the promoted version."""

from __future__ import annotations

import logging
from collections.abc import Callable

from attakit.errors import AttaError
from attakit.service.learner.candidates import SOURCE, promoted_versions
from attakit.service.predictor import Model, Predictor
from attakit.service.storage.rows import Version
from attakit.service.storage.versions import VersionStore
from attakit.service.worker import Worker

log = logging.getLogger(__name__)

PAUSE = 0.5  # seconds between two checks


class Follower(Worker):
    """A thread that checks which version is promoted, and swaps the predictor's model.

    If the file of a promoted version cannot be read, the current model continues to answer. If
    there is no model yet, the version promoted before it answers, or the source model.

    `load` turns a version into a model that is ready to answer. `unreadable` is called once with
    the number of a promoted version that cannot be read.
    """

    def __init__(
        self,
        versions: VersionStore,
        predictor: Predictor,
        load: Callable[[Version], Model],
        *,
        unreadable: Callable[[int], None] = lambda _number: None,
    ) -> None:
        super().__init__("follower", pause=PAUSE)
        self.versions = versions
        self.predictor = predictor
        self.load = load
        self.unreadable = unreadable
        self._unreadable: int | None = None

    def run_once(self) -> None:
        self.sync()

    def sync(self) -> None:
        """Swap the model if the promoted version is not the one that answers."""
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
