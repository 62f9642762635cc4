"""The state of the service for the dashboard, read from the database at most once a second."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from fractions import Fraction
from threading import Lock

from attakit.client.dashboard_bodies import (
    AccuracyBody,
    AlarmBody,
    AnnotatorBody,
    DriftBody,
    LabelsBody,
    Learning,
    SeriesBody,
    Share,
    StatusBody,
    TrafficBody,
    TurnBody,
)
from attakit.errors import StateError
from attakit.label.budget import as_number, exact
from attakit.service.storage import Storage
from attakit.service.storage.rows import Event, QuestionCounts
from attakit.service.storage.settling import ANNOTATORS
from attakit.service.worker import Worker
from attakit.settings.service import ServiceLabelsTable, ServiceSettings

_CACHE_SECONDS = 1.0
_MINUTE = 60.0
_ALARMS = 20
_GATES = 100  # newest gates to search for a measured agreement

NamedNumbers = Mapping[str, float]


class Overview(Worker):
    """Numbers for the dashboard, and a thread that refreshes them without delaying requests.

    `learning` returns True if the learner is alive, `answering` the served version, if any, and
    `traffic` the recent requests. `clock` returns the time of day, `ticks` monotonic seconds.
    """

    def __init__(
        self,
        storage: Storage,
        settings: ServiceSettings,
        *,
        clock: Callable[[], float] = time.time,
        learning: Callable[[], bool] = lambda: True,
        answering: Callable[[], int | None] = lambda: None,
        traffic: Callable[[], TrafficBody | None] = lambda: None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("overview", pause=None)
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._learning = learning
        self._answering = answering
        self._traffic = traffic
        self._answered = storage.samples.count()
        self._ticks = ticks
        self._lock = Lock()
        self._served: deque[tuple[float, int]] = deque()
        self._cached: tuple[float, StatusBody] | None = None
        self._latest: StatusBody | None = None  # kept after a change, which drops the cached one
        self._changes = 0
        self._full = False  # True if the learner's queue has reached its limit

    def count_served(self, count: int) -> None:
        """Record that a number of inputs were answered now."""
        with self._lock:
            self._answered += count
            self._served.append((self._clock(), count))
            self._drop_old()

    def may_keep(self) -> bool:
        """True if a sample that arrives now is stored for the learner.

        Nothing is stored while learning is paused or the learner's queue is full. Otherwise the
        database would grow without limit while the learner is down.
        """
        status = self._recent()
        return not self._full and status.learning != "paused"

    def may_ask(self) -> bool:
        """True if the budget allows a question about a stored sample."""
        return self._recent().labels.left != 0

    def changed(self) -> None:
        """Refresh at the next call, because a user has changed something and expects to see it."""
        with self._lock:
            self._changes += 1
            self._cached = None

    def status(self) -> StatusBody:
        """Return the numbers at the top of the dashboard, at most a second old."""
        cached = self._cached
        if cached is None or self._is_old(cached):
            return self._refresh()
        return cached[1]

    def learner_runs(self) -> bool:
        """True if the learner process exists, paused or not."""
        return self._learning()

    def run_once(self) -> None:
        """Refresh the status if it is old. Requests call `wake` when they see an old one."""
        self.status()

    def series(self, points: int, seconds: float | None = None) -> SeriesBody:
        """Return the turns of the last `seconds`, or the newest; alarms and changes."""
        if seconds is None:
            newest = reversed(self._storage.turns.recent(points))
            turns = [_turn(one.number, one.at, numbers) for one, numbers in newest]
        else:
            found = self._storage.turns.series(self._clock() - seconds, points)
            turns = [_turn(one.number, one.at, one.numbers) for one in found]
        changes = [_alarm(one) for one in self._storage.events.recent(_ALARMS, kind="change")]
        return SeriesBody(turns=turns, alarms=[*self._alarms(_ALARMS), *changes])

    def _recent(self) -> StatusBody:
        """Return the status without waiting for the database; the thread refreshes an old one.

        Predictions need it, and use the latest one while the database cannot be read.
        """
        cached = self._cached
        if cached is None:
            try:
                return self.status()
            except StateError:
                if self._latest is None:
                    raise
                return self._latest
        if self._is_old(cached):
            self.wake()
        return cached[1]

    def _refresh(self) -> StatusBody:
        changes, now = self._changes, self._ticks()
        self._latest = status = self._read_status()
        self._full = self._is_full(status.waiting)
        with self._lock:
            if self._changes == changes:  # otherwise something changed during the read
                self._cached = (now, status)
        return status

    def _is_full(self, waiting: int) -> bool:
        limits = self._settings.retention
        size = self._storage.samples.untaken_bytes()
        return waiting >= limits.images or size >= 1e6 * limits.megabytes

    def _is_old(self, cached: tuple[float, StatusBody]) -> bool:
        return self._ticks() - cached[0] >= _CACHE_SECONDS

    def _read_status(self) -> StatusBody:
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
            traffic=self._traffic(),
            annotators=_annotators(storage.key_values.get(ANNOTATORS, {})),
        )

    def _state(self) -> Learning:
        if self._storage.key_values.get("paused", False):
            return "paused"
        return "running" if self.learner_runs() else "stopped"

    def _newest_numbers(self) -> NamedNumbers:
        recent = self._storage.turns.recent(2)  # the newest may not be finished
        return next((numbers for _, numbers in recent if numbers is not None), {})

    def _agreement(self) -> float | None:
        """Return the agreement that the newest gate measured."""
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


def labels_body(counts: QuestionCounts, table: ServiceLabelsTable) -> LabelsBody:
    """Count the questions by state, and compute the budget that is left.

    A question without an answer costs nothing in the end. The learner's ledger computes the same
    from its log of turns. Between two turns it is behind these counts.

    >>> counts = QuestionCounts(asked=5, open=1, answered=2, skipped=2)
    >>> labels_body(counts, ServiceLabelsTable(budget=10)).left
    7
    >>> labels_body(counts, ServiceLabelsTable(budget=10, policy="majority", answers=3)).left
    1
    >>> counts = QuestionCounts(asked=3, open=1, answered=1, no=1, yes_no=3)
    >>> labels_body(counts, ServiceLabelsTable(budget=10, yes_no_price=0.1)).left
    9.7
    """
    limit = table.budget if isinstance(table.budget, int) else None
    in_classes = counts.paid - counts.yes_no + exact(table.yes_no_price) * counts.yes_no
    return LabelsBody(
        asked=counts.asked,
        answered=counts.answered + counts.no + counts.none - counts.refunded,
        open=counts.open,
        expired=counts.expired,
        skipped=counts.skipped + counts.refunded,
        none=counts.none - counts.refunded,
        budget=limit,
        left=None
        if limit is None
        else as_number(max(Fraction(0), limit - table.cost * in_classes)),
    )


def _turn(number: int, at: float, numbers: NamedNumbers | None) -> TurnBody:
    finite = {name: _finite(value) for name, value in (numbers or {}).items()}
    labels = finite.get("labels")
    return TurnBody(
        turn=number,
        at=at,
        entropy=finite.get("entropy"),
        drift=DriftBody(
            entropy=finite.get("drift_entropy"),
            mix=finite.get("drift_mix"),
            distance=finite.get("drift_distance"),
        ),
        labels=None if labels is None else round(labels),
        accuracy=finite.get("accuracy"),
        source_accuracy=finite.get("source_accuracy"),
    )


def _accuracy(numbers: NamedNumbers) -> AccuracyBody | None:
    names = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_count")
    value, low, high, count = (_finite(numbers.get(name)) for name in names)
    if value is None or low is None or high is None or not count:
        return None
    return AccuracyBody(
        value=value, low=low, high=high, count=round(count), source=_source_accuracy(numbers)
    )


def _source_accuracy(numbers: NamedNumbers) -> Share | None:
    names = ("source_accuracy", "source_accuracy_low", "source_accuracy_high")
    value, low, high = (_finite(numbers.get(name)) for name in names)
    if value is None or low is None or high is None:
        return None
    return Share(value=value, low=low, high=high)


def _annotators(found: Mapping[str, tuple[float, int]]) -> list[AnnotatorBody]:
    """Return how reliable each person is, most answers first."""
    people = [
        AnnotatorBody(name=name, accuracy=accuracy, answers=answers)
        for name, (accuracy, answers) in found.items()
    ]
    return sorted(people, key=lambda one: (-one.answers, one.name))


def _alarm(event: Event) -> AlarmBody:
    details = event.details
    what = str(details.get("what", event.kind))
    text = str(details.get("text", what))
    return AlarmBody(at=event.at, what=what, text=text, rose=event.kind != "change")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
