"""The learner as one object: it resumes, then takes turns when they are due."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable

from attakit.label.ledger import Ledger
from attakit.methods.asking import AskingMethod
from attakit.nn.classifier import Classifier
from attakit.nn.devices import prepare
from attakit.service.blobs import open_blobs
from attakit.service.learner.allowance import PlannedBudget, label_rate, question_limit
from attakit.service.learner.audit import Audit, Decode, served_accuracy
from attakit.service.learner.candidates import VersionFiles, older
from attakit.service.learner.drift import Drift
from attakit.service.learner.gate import Gatekeeper
from attakit.service.learner.known import store_known
from attakit.service.learner.memory import SAVED_TURN, Checkpoints, Memory, UnusableCheckpoint
from attakit.service.learner.planner import Planned, Planner
from attakit.service.learner.turns import TurnTaker
from attakit.service.models import CHECKPOINTS, VERSIONS, live_method
from attakit.service.storage.rows import Turn
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

_SHORTEST = 0.01  # seconds between two looks at the database


class LiveLearner:
    """Learns from served samples and from people's answers.

    Its state is a function of the log of turns. It can be stopped at any moment: `resume` restores
    the state. The source model is copied. `decode` turns a stored content into an input.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        storage: Storage,
        source: Classifier,
        decode: Decode,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.storage = storage
        self.memory = build_memory(settings, source)
        self._clock = clock
        self._decode = decode
        frozen = prepare(copy.deepcopy(source), source.device).eval()
        versions, checkpoints = (
            open_blobs(settings, storage, kind) for kind in (VERSIONS, CHECKPOINTS)
        )
        self._files = VersionFiles(versions, storage.versions, frozen)
        self._checkpoints = Checkpoints(checkpoints, storage.key_values)
        self._planner = Planner(settings, storage, self.memory, clock)
        self._turns = TurnTaker(settings, storage, self.memory, self._files, decode)
        audit = Audit(storage, decode, settings.gate.audit_window, meanwhile=self._learn_answers)
        self._gate = Gatekeeper(settings, storage, self._files, audit)

    def resume(self) -> int:
        """Restore the state after the last planned turn; returns how many turns were replayed."""
        self._files.begin(self._clock())
        store_known(self.settings, self.storage, self._files.source, self._decode, at=self._clock())
        self._checkpoints.load(self.memory)
        self._check_log()
        turns = self.storage.turns.after(self.memory.turn)
        for turn in turns:
            self._take(turn)
        if turns:
            log.info("Replayed %d turns, up to turn %d.", len(turns), self.memory.turn)
        self._gate.judge_new(self.memory)
        return len(turns)

    def _check_log(self) -> None:
        last = self.storage.turns.last()
        if self.memory.turn > last:
            raise UnusableCheckpoint(f"The learner: {older(self.memory.turn, last)}")

    def run_once(self) -> bool:
        """Take the next turn if one is due, with the batch behind it; returns True if one was."""
        settled = self.storage.questions.settle()
        planned = self._planner.plan()
        if planned is None:
            # A model that gets worse is rolled back even while learning is paused.
            if settled or self._gate.is_behind():
                self._gate.judge_new(self.memory)
            return False
        while planned is not None:
            self._take_new(planned)
            # The gate is slow, so a due batch must not wait for it.
            planned = None if planned.turn.samples else self._planner.plan()
        self._gate.judge_new(self.memory)
        return True

    def idle_seconds(self, most: float) -> float:
        """Return how long to wait before `run_once`: until an answer settles, at most `most`."""
        due = self.storage.questions.next_settling()
        return most if due is None else min(most, max(_SHORTEST, due - self._clock()))

    def clean(self) -> int:
        """Remove contents beyond the limits; returns the number removed."""
        table = self.settings.retention
        return self.storage.samples.clean(
            table.images,
            table.days,
            table.megabytes,
            self.storage.key_values.get(SAVED_TURN, -1),
            self.settings.gate.audit_window,
        )

    def save(self) -> None:
        """Write a checkpoint now."""
        if self.memory.turn > self.storage.key_values.get(SAVED_TURN, -1):
            self._checkpoints.save(self.memory)

    def _learn_answers(self) -> None:
        """Learn from answers that settle while the gate judges a candidate."""
        planned = self._planner.plan_answers()
        if planned is not None:
            self._take_new(planned)

    def _take_new(self, planned: Planned) -> None:
        if planned.passed:
            message = "%d samples are skipped: more arrived than the learner can process."
            log.warning(message, len(planned.passed))
        self.storage.turns.plan(planned.turn, planned.passed)
        self._take(planned.turn)

    def _take(self, turn: Turn) -> None:
        numbers = self._turns.take(turn)
        table = self.settings.gate
        found = served_accuracy(self.storage, table.audit_window, table.confidence)
        if found is not None:
            numbers |= found.numbers()
        self.storage.turns.finish(turn.number, numbers)
        # Right after forgetting, because the last checkpoint still holds the sample.
        if turn.forgotten or (turn.number + 1) % self.settings.learning.checkpoint_every == 0:
            self._checkpoints.save(self.memory)


def build_memory(settings: ServiceSettings, source: Classifier) -> Memory:
    """Create the memory of a learner that has seen nothing yet."""
    price = settings.labels.yes_no_price
    ledger = Ledger(PlannedBudget(question_limit(settings.labels), yes_no_price=price))
    method = live_method(settings, source, label_rate(settings.labels))
    memory = Memory(method, ledger, Drift(settings.drift.delta))
    if settings.labels.spread_over is not None and isinstance(method, AskingMethod):
        method.rate = label_rate(settings.labels, memory.price)
    return memory
