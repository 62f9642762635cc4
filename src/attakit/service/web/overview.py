"""How the service is doing, counted from the database at most once a second."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from attakit.service.storage import Storage
from attakit.service.storage.records import Event, QuestionCounts, Turn
from attakit.service.web.bodies import (
    AccuracyBody,
    AlarmBody,
    DriftBody,
    LabelsBody,
    Learning,
    Series,
    StatusBody,
    TurnBody,
)
from attakit.settings.service import LabelTable, ServiceSettings

log = logging.getLogger(__name__)

_CACHE_SECONDS = 1.0
_MINUTE = 60.0
_ALARMS = 20
_GATES = 100  # newest among which one that looked at the agreement is searched

Numbers = Mapping[str, float]


class Overview:
    """Numbers for the dashboard.

    Parameters
    ----------
    storage, settings
        Of the service.
    clock
        Time of day.
    learning
        Whether the learner is alive.
    answering
        Number of the version whose answers are given, once there is one.
    ticks
        Seconds, for what is counted anew only once in a while.
    """

    def __init__(
        self,
        storage: Storage,
        settings: ServiceSettings,
        *,
        clock: Callable[[], float] = time.time,
        learning: Callable[[], bool] = lambda: True,
        answering: Callable[[], int | None] = lambda: None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._learning = learning
        self._answering = answering
        self._answered = storage.samples.count()
        self._ticks = ticks
        self._lock = Lock()
        self._served: deque[tuple[float, int]] = deque()
        self._known: tuple[float, StatusBody] | None = None
        self._changes = 0
        self._full = False  # whether as much waits for the learner as may be kept at all
        self._pending = Lock()  # held while the status is counted aside
        self._renewing = ThreadPoolExecutor(1, "overview")

    def count_served(self, count: int) -> None:
        """Remember that so many inputs were answered now."""
        with self._lock:
            self._answered += count
            self._served.append((self._clock(), count))
            self._drop_old()

    def may_keep(self) -> bool:
        """Whether the learner will look at a sample that comes now.

        Nothing is kept while learning is paused, nor beyond what may be kept at all: a learner
        that is not there would let the database grow for ever.
        """
        status = self._recent()
        return not self._full and status.learning != "paused"

    def may_ask(self) -> bool:
        """Whether a sample that is kept may be put up for labelling."""
        return self._recent().labels.left != 0

    def changed(self) -> None:
        """Count anew next time: somebody just changed something and wants to see it."""
        with self._lock:
            self._changes += 1
            self._known = None

    def status(self) -> StatusBody:
        """All that the head of the dashboard shows; a second old at most."""
        known = self._known
        if known is None or self._is_old(known):
            known = self._renew()
        return known[1]

    def learner_runs(self) -> bool:
        """Whether the process of the learner is there, paused or not."""
        return self._learning()

    def close(self) -> None:
        """Count no more."""
        self._renewing.shutdown()

    def series(self, points: int) -> Series:
        """The newest turns, oldest first, and the alarms."""
        turns = reversed(self._storage.turns.recent(points))
        return Series(turns=[_turn(*one) for one in turns], alarms=self._alarms(_ALARMS))

    def budget_left(self) -> int | None:
        """Questions that may still be put; None without a limit."""
        return self.status().labels.left

    def _recent(self) -> StatusBody:
        """The status without waiting for the database: it is counted anew aside."""
        known = self._known
        if known is None:
            return self.status()
        if self._is_old(known) and self._pending.acquire(blocking=False):
            try:
                self._renewing.submit(self._renew).add_done_callback(self._renewed)
            except RuntimeError:  # the server is closing
                self._pending.release()
        return known[1]

    def _renewed(self, done: Future[tuple[float, StatusBody]]) -> None:
        self._pending.release()
        if error := done.exception():
            log.error("the status cannot be counted", exc_info=error)

    def _renew(self) -> tuple[float, StatusBody]:
        changes = self._changes
        known = (self._ticks(), self._look())
        self._full = self._is_full(known[1].waiting)
        with self._lock:
            if changes == self._changes:  # else it may be from before the change
                self._known = known
        return known

    def _is_full(self, waiting: int) -> bool:
        limits = self._settings.retention
        size = self._storage.samples.untaken_bytes()
        return waiting >= limits.images or size >= 1e6 * limits.megabytes

    def _is_old(self, known: tuple[float, StatusBody]) -> bool:
        return self._ticks() - known[0] >= _CACHE_SECONDS

    def _look(self) -> StatusBody:
        storage = self._storage
        promotion = storage.versions.current()
        return StatusBody(
            version=promotion.version if promotion else None,
            answering=self._answering(),
            promoted_at=promotion.at if promotion else None,
            learning=self._state(),
            throughput=self._throughput(),
            served=max(self._answered, storage.samples.count()),
            waiting=storage.samples.untaken_count(),
            labels=labels_body(storage.questions.counts(), self._settings.labels),
            accuracy=_accuracy(self._newest_numbers()),
            agreement=self._agreement(),
            alarms=self._alarms(_ALARMS),
            turn=storage.turns.last(),
        )

    def _state(self) -> Learning:
        if self._storage.key_values.get("paused", False):
            return "paused"
        return "running" if self.learner_runs() else "stopped"

    def _newest_numbers(self) -> Numbers:
        recent = self._storage.turns.recent(2)  # the newest may not be finished
        return next((numbers for _, numbers in recent if numbers is not None), {})

    def _agreement(self) -> float | None:
        """As the newest gate that looked at it measured it."""
        newest_first = self._storage.versions.recent(_GATES)
        gates = [one.gate.numbers for one in newest_first if one.gate]
        measured = [_finite(numbers.get("trust")) for numbers in gates]
        return next((value for value in measured if value is not None), None)

    def _alarms(self, limit: int) -> list[AlarmBody]:
        return [_alarm(event) for event in self._storage.events.recent(limit, kind="alarm")]

    def _throughput(self) -> float:
        with self._lock:
            self._drop_old()
            return sum(count for _, count in self._served) / _MINUTE

    def _drop_old(self) -> None:
        while self._served and self._served[0][0] <= self._clock() - _MINUTE:
            self._served.popleft()


def labels_body(counts: QuestionCounts, table: LabelTable) -> LabelsBody:
    """What became of the questions; one that brings no label costs nothing in the end.

    >>> counts = QuestionCounts(asked=5, open=1, answered=2, skipped=2)
    >>> labels_body(counts, LabelTable(budget=10)).left
    7
    >>> labels_body(counts, LabelTable(budget=10, policy="majority", answers=3)).left
    1
    """
    limit = table.budget if isinstance(table.budget, int) else None
    spent = table.cost * (counts.open + counts.answered + counts.forgotten)
    return LabelsBody(
        asked=counts.asked,
        answered=counts.answered,
        open=counts.open,
        expired=counts.expired,
        skipped=counts.skipped + counts.none,
        budget=limit,
        left=None if limit is None else max(0, limit - spent),
    )


def _turn(turn: Turn, numbers: Numbers | None) -> TurnBody:
    told = {name: _finite(value) for name, value in (numbers or {}).items()}
    labels = told.get("labels")
    return TurnBody(
        turn=turn.number,
        at=turn.at,
        entropy=told.get("entropy"),
        drift=DriftBody(
            entropy=told.get("drift_entropy"),
            mix=told.get("drift_mix"),
            distance=told.get("drift_distance"),
        ),
        labels=None if labels is None else round(labels),
        accuracy=told.get("accuracy"),
    )


def _accuracy(numbers: Numbers) -> AccuracyBody | None:
    names = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_count")
    value, low, high, count = (_finite(numbers.get(name)) for name in names)
    if value is None or low is None or high is None or not count:
        return None
    return AccuracyBody(value=value, low=low, high=high, count=round(count))


def _alarm(event: Event) -> AlarmBody:
    details = event.details
    what = str(details.get("what", event.kind))
    return AlarmBody(at=event.at, what=what, text=str(details.get("text", what)))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
