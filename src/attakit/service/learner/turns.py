"""One turn of the learner. It depends only on its row in the log and on the memory."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from attakit.engine.loop import answer, learn
from attakit.errors import ModelError, StreamError
from attakit.label.budget import as_number
from attakit.methods.asking import AskingMethod
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.protocols import ShowsModel
from attakit.queries import Allowance, Query, SampleId
from attakit.records import Batch, Prediction, Step, StepResult
from attakit.service.learner.audit import Decode
from attakit.service.learner.candidates import VersionFiles
from attakit.service.learner.drift import Reading
from attakit.service.learner.memory import Memory
from attakit.service.learner.people import People, sample_predictions, to_query
from attakit.service.storage.rows import Question, Turn
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

ALARM, CHANGE = "alarm", "change"  # kinds of events: a rise raises an alarm
_ALARMS = 200  # number of newest alarms to search when a turn is repeated


class TurnTaker:
    """Takes turns. A repeated turn does the same, and writes nothing twice.

    `decode` turns a stored content into an input.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        storage: Storage,
        memory: Memory,
        files: VersionFiles,
        decode: Decode,
    ) -> None:
        self._settings = settings
        self._storage = storage
        self._memory = memory
        self._files = files
        self._decode = decode
        soft = isinstance(memory.method, AskingMethod) and memory.method.learns_soft
        self._people = People(storage.questions, memory.ledger, len(settings.classes), soft=soft)

    def take(self, turn: Turn) -> dict[str, float]:
        """Take a turn, and return its numbers for the dashboard."""
        began = time.perf_counter()
        memory = self._memory
        memory.forget([SampleId(sample) for sample in turn.forgotten])
        inputs = self._inputs(turn.samples)
        put = self._storage.questions.of_turn(turn.number)  # if the turn was taken before
        numbers: dict[str, float] = {}
        if inputs:
            asked_before = {
                SampleId(one.sample): one.proposed for one in put if one.purpose == "learn"
            }
            numbers |= self._meet(turn, inputs, asked_before or None)
        elif turn.settled:
            numbers |= self._learn_only(turn)
        self._pay(put)
        if inputs or turn.settled:
            self._make_candidate(turn)
        memory.turn = turn.number
        numbers |= self._account()
        numbers["seconds"] = time.perf_counter() - began
        return {name: value for name, value in numbers.items() if math.isfinite(value)}

    def _inputs(self, samples: Sequence[str]) -> dict[SampleId, Tensor]:
        """Return inputs by sample, in the given order, without removed contents."""
        contents = self._storage.samples.contents(samples) if samples else {}
        found = {}
        for sample in samples:
            if sample in contents:
                try:
                    found[SampleId(sample)] = self._decode(contents[sample])
                except StreamError as error:
                    log.warning("Sample %s is left out: %s", sample, error)
        return found

    def _pay(self, put: Sequence[Question]) -> None:
        """Pay for questions that were asked before but not when the turn was repeated.

        A repeated turn can differ if a sample was forgotten, or a setting changed, after it and
        before the next checkpoint.
        """
        memory = self._memory
        missed = [one for one in put if not memory.ledger.knows(to_query(one))]
        memory.ledger.ask([to_query(one) for one in missed])
        for one in missed:
            if one.purpose != "learn":
                memory.asked_audit += one.purpose == "audit"
                continue
            memory.asked_learn += self._price(to_query(one))
            if one.guesses:
                memory.count(one.guesses[0][0], 1)

    def _price(self, query: Query) -> float:
        return as_number(self._memory.ledger.budget.price(query))

    def _meet(
        self,
        turn: Turn,
        inputs: Mapping[SampleId, Tensor],
        repeat: Mapping[SampleId, int | None] | None,
    ) -> dict[str, float]:
        """Take a turn with samples: ask audit questions, let the method answer, ask and learn."""
        everyone = torch.stack(list(inputs.values()))
        self._people.begin(turn, self._memory.version)
        source = _answer(self._files.source, everyone)
        self._people.record_source(sample_predictions(tuple(inputs), source))
        reading = self._watch(turn, source)
        self._ask_audit(turn, tuple(inputs), everyone)
        self._ask_checks(turn)
        result = self._step(turn, inputs, repeat)
        self._settle(result)
        entropies = self._people.entropies
        return {
            **_numbers(result),
            "entropy": sum(entropies) / len(entropies),
            "drift_entropy": reading.entropy,
            "drift_mix": reading.mix,
            "drift_distance": reading.distance,
            "samples": float(len(inputs)),
        }

    def _step(
        self,
        turn: Turn,
        inputs: Mapping[SampleId, Tensor],
        repeat: Mapping[SampleId, int | None] | None,
    ) -> StepResult:
        """Run the method's part. It never sees the audit samples, which judge what it learned."""
        memory = self._memory
        seen = [name for name in inputs if name not in turn.audit]
        if not seen:
            return self._learn(turn)
        boosted = turn.number <= memory.boosted_until
        pace = self._settings.drift.boost if boosted else 1.0
        allowance = Allowance(turn.allowance, self._quotas(), pace, repeat=repeat)
        batch = Batch(turn.number, tuple(seen), torch.stack([inputs[name] for name in seen]))
        step, seconds = answer(batch, memory.method, allowance)
        self._people.record(sample_predictions(batch.samples, step.prediction))
        return learn(batch, step, seconds, memory.method, self._people, memory.ledger)

    def _quotas(self) -> dict[int, int] | None:
        """Return the questions left for each class; None without a limit per class."""
        limit = self._settings.labels.per_class
        if limit == "unlimited":
            return None
        asked = self._memory.asked_by_class
        classes = range(len(self._settings.classes))
        return {kind: max(0, limit - asked.get(kind, 0)) for kind in classes}

    def _learn_only(self, turn: Turn) -> dict[str, float]:
        """Take a turn without samples."""
        self._people.begin(turn, self._memory.version)
        result = self._learn(turn)
        self._settle(result)
        return _numbers(result)

    def _learn(self, turn: Turn) -> StepResult:
        classes = len(self._settings.classes)
        nothing = Batch(turn.number, (), torch.zeros(0))
        step = Step(Prediction(torch.zeros(0, classes), torch.zeros(0, 1)))
        memory = self._memory
        return learn(nothing, step, 0.0, memory.method, self._people, memory.ledger)

    def _ask_audit(self, turn: Turn, names: Sequence[SampleId], inputs: Tensor) -> None:
        queries = [Query(name, turn.number) for name in names if name in turn.audit]
        if not queries:
            return
        # With the whole batch, because some methods use batch statistics.
        self._people.record(sample_predictions(names, self._memory.method.predict(inputs)))
        self._memory.ledger.ask(queries)
        self._people.ask_audit(queries)
        self._memory.asked_audit += len(queries)

    def _ask_checks(self, turn: Turn) -> None:
        """Ask about known examples, or again about samples of the audit."""
        inputs = self._inputs(turn.checks or ())
        if not inputs:
            return
        source = _answer(self._files.source, torch.stack(list(inputs.values())))
        queries = [Query(name, turn.number) for name in inputs]
        self._memory.ledger.ask(queries)
        self._people.ask_checks(queries, sample_predictions(tuple(inputs), source))

    def _settle(self, result: StepResult) -> None:
        """Update the counts, and settle the audit without showing it to the method."""
        memory = self._memory
        memory.ledger.settle((*self._people.collect_audit(), *self._people.collect_checks()))
        memory.asked_learn += sum(map(self._price, result.step.queries))
        classes = dict(
            zip(result.batch.samples, result.step.prediction.logits.argmax(dim=1), strict=True)
        )
        for query in result.step.queries:
            memory.count(int(classes[query.sample]), 1)
        refunded = {given.query for given in result.answers if not given.says_something}
        for question in self._people.settled:
            if to_query(question) in refunded and question.guesses:
                memory.count(question.guesses[0][0], -1)

    def _watch(self, turn: Turn, source: Prediction) -> Reading:
        reading = self._memory.drift.observe(source)
        if reading.alarms:
            self._memory.boosted_until = turn.number + self._settings.drift.boost_turns
            events = self._storage.events
            known = [one for kind in (ALARM, CHANGE) for one in events.recent(_ALARMS, kind=kind)]
            before = {(one.details.get("turn"), one.details.get("what")) for one in known}
            for alarm in reading.alarms:
                if (turn.number, alarm.what) not in before:
                    kind = ALARM if alarm.rose else CHANGE
                    events.add(kind, "learner", turn=turn.number, what=alarm.what, text=alarm.text)
        return reading

    def _make_candidate(self, turn: Turn) -> None:
        """Save a version every `gate.every` turns, if new labels arrived.

        Without labels the model may still follow the stream, but no new evidence exists.
        """
        memory = self._memory
        memory.since_candidate += 1
        if not isinstance(memory.method, ShowsModel):
            return
        model = memory.method.adapted_model
        _check_weights(model)
        if memory.since_candidate < self._settings.gate.every:
            return
        weights = self._files.name(model)
        if self._files.is_source(weights) or not self._has_new_labels():
            return
        memory.version = self._files.write(model, weights, turn, memory.ledger.received).number
        memory.since_candidate = 0

    def _has_new_labels(self) -> bool:
        """True if labels for learning or for the audit arrived since the last version."""
        last = self._storage.versions.get([self._memory.version])
        return all(self._memory.ledger.received > one.labels for one in last.values())

    def _account(self) -> dict[str, float]:
        ledger = self._memory.ledger
        return {
            "asked": float(ledger.asked),
            "labels": float(ledger.received),
            "refunded": float(ledger.refunded),
            "left": float(ledger.budget.remaining),
        }


def _answer(model: Classifier, inputs: Tensor) -> Prediction:
    with torch.no_grad():
        prediction: Prediction = model(place(inputs, model.device))
    return prediction


def _check_weights(model: nn.Module) -> None:
    """Raise an error if a model has diverged, so that no checkpoint of it is written."""
    if not all(bool(each.isfinite().all()) for each in model.parameters()):
        raise ModelError(
            "The learner: weights became NaN or infinite. Lower the learning rate of [method]."
        )


def _numbers(result: StepResult) -> dict[str, float]:
    return {
        **result.step.numbers,
        **result.training.numbers,
        "updates": float(result.training.updates),
        "questions": float(len(result.step.queries)),
        "answers": float(len(result.answers)),
    }
