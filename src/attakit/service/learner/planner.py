"""The planner: decides when the next turn is due and what it contains."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attakit.label.budget import exact
from attakit.protocols import Asks, LearnsAtOnce
from attakit.randomness import generator
from attakit.service.learner.allowance import (
    HOUR,
    Amount,
    PurposeCounts,
    asked_at_share,
    audit_share,
    hourly_limit,
    share_out,
)
from attakit.service.learner.checking import CheckPlanner
from attakit.service.learner.memory import Memory
from attakit.service.storage.rows import Question, Turn
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Planned:
    """A turn, and the samples that are skipped with it because too many arrived."""

    turn: Turn
    passed: tuple[str, ...] = ()


class Planner:
    """Checks what is waiting, and plans a turn.

    A turn is due when a batch is full, when its oldest sample has waited long enough, when outcomes
    wait to be learned from, or when samples must be forgotten. Outcomes are part of the batch's
    turn. If the method learns at once, they get their own turn before it. While learning is paused,
    only forgetting continues.

    If too many samples wait, the batch is drawn from all of them with equal probability. The others
    are skipped.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        storage: Storage,
        memory: Memory,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._memory = memory
        self._clock = clock
        self._checks = CheckPlanner(settings, storage)

    def plan(self) -> Planned | None:
        """Return the next turn, or None if nothing is due."""
        forgotten = self._storage.samples.to_forget()
        if self._storage.key_values.get(PAUSED, False):
            return Planned(self._turn((), (), forgotten)) if forgotten else None
        settled = self._storage.questions.settled()
        answers_first = bool(settled) and isinstance(self._memory.method, LearnsAtOnce)
        batch_next = not answers_first and self._batch_is_due()
        samples, passed = self._batch() if batch_next else ((), ())
        if not (samples or settled or forgotten):
            return None
        return Planned(self._turn(samples, settled, forgotten), passed)

    def plan_answers(self) -> Planned | None:
        """Plan a turn for answers that can be settled now, if the method learns at once."""
        at_once = isinstance(self._memory.method, LearnsAtOnce)
        if not at_once or self._storage.key_values.get(PAUSED, False):
            return None
        self._storage.questions.settle()
        settled = self._storage.questions.settled()
        return Planned(self._turn((), settled, ())) if settled else None

    def _batch_is_due(self) -> bool:
        table = self._settings.learning
        oldest = self._storage.samples.oldest_untaken()
        if oldest is None:
            return False
        waited = self._clock() - oldest >= table.batch_seconds
        return waited or self._storage.samples.untaken_count() >= table.batch_size

    def _batch(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the samples for the next turn in order of arrival, and the skipped ones."""
        table = self._settings.learning
        waiting = self._storage.samples.untaken_names()
        if len(waiting) <= table.backlog:
            return waiting[: table.batch_size], ()
        random = generator(self._settings.seed, "backlog", self._memory.turn + 1)
        size = min(table.batch_size, len(waiting))
        drawn = set(random.choice(len(waiting), size, replace=False).tolist())
        batch = tuple(name for place, name in enumerate(waiting) if place in drawn)
        return batch, tuple(name for place, name in enumerate(waiting) if place not in drawn)

    def _turn(
        self, samples: Sequence[str], settled: Sequence[Question], forgotten: Sequence[str]
    ) -> Turn:
        number = self._memory.turn + 1
        # One generator in a fixed order: first it rounds, then it draws.
        random = generator(self._settings.seed, "audit", number)
        allowed = PurposeCounts()
        checks: tuple[str, ...] = ()
        if samples:
            available = self._available()
            checks = self._checks.draw(available, generator(self._settings.seed, "checks", number))
            table, asked = self._settings.labels, self._memory.asked
            allowed = share_out(
                audit_share(table, asked.audit),
                available - len(checks),
                len(samples),
                asked_at_share(table, asked),
                random,
                method_asks=isinstance(self._memory.method, Asks),
                price=self._memory.price,
            )
        places = (
            sorted(random.choice(len(samples), allowed.audit, replace=False)) if samples else ()
        )
        return Turn(
            number=number,
            samples=tuple(samples),
            allowance=int(allowed.learn),
            audit=tuple(samples[place] for place in places),
            settled=tuple(question.question for question in settled),
            forgotten=tuple(forgotten),
            checks=checks,
            at=self._clock(),
        )

    def _available(self) -> Amount:
        """Return how many questions may be asked; yes/no ones count as their price."""
        asked = self._storage.questions.asked_since(self._clock() - HOUR)
        price = exact(self._settings.labels.yes_no_price)
        this_hour = hourly_limit(self._settings.labels) - asked.classes - price * asked.yes_no
        return max(0, min(self._memory.left, this_hour))
