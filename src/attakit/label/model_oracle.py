"""ModelOracle: a model answers in batches, and abstains if it is unsure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from attakit.errors import LabelError, SettingError, check_count, check_range
from attakit.label.classes import check_classes
from attakit.label.packing import (
    check_state,
    pack_answers,
    pack_queries,
    unpack_answers,
    unpack_queries,
)
from attakit.label.said import Said, answer_from
from attakit.queries import Answer, Query, SampleId

log = logging.getLogger(__name__)


class ModelOracle:
    """Answers questions with a function that labels several samples at once, such as a large model.

    `ask` only stores the questions. The function runs when answers are collected. On an `OSError`
    (no connection, a timeout) it is called again. After the last retry the questions are skipped
    and refunded. Any other error reaches the caller unchanged. The model sees each sample once:
    later questions about it get the same answer.

    Parameters
    ----------
    function
        Gets the names of some samples and returns what it says about each, in the same order: a
        class index, a class name (if classes are given), how likely each class is (a list of
        numbers, or a dictionary from classes to numbers), a set of classes ("one of these"), or
        None to abstain. `Endpoint` is such a function for a model behind HTTP.
    classes
        Names of the classes, in the order of the model's outputs.
    batch_size
        Maximum number of samples per call.
    least_confidence
        Abstain if the most likely class has a smaller probability than this.
    soft
        Pass probabilities on to the method. Otherwise the most likely class becomes the label.
    weight
        How far to trust the answers; 1 is as much as a person's.
    price
        Cost of an answer in labels, at most the price of the question. None means that price.
    retries, pause
        Number of retries, and seconds before the first one. Each wait is twice as long as the one
        before.
    capacity
        Number of answers in the cache. The oldest are removed first.
    annotator
        Name that signs the answers.
    sleep
        Function that waits for a number of seconds.

    Examples
    --------
    >>> oracle = ModelOracle(lambda names: [[0.9, 0.1], [0.5, 0.5]], least_confidence=0.8)
    >>> oracle.ask([Query(SampleId("a"), step=0), Query(SampleId("b"), step=0)])
    >>> [answer.kind for answer in oracle.collect()]
    ['soft', 'skipped']
    >>> oracle.calls
    1
    """

    def __init__(
        self,
        function: Callable[[Sequence[SampleId]], Sequence[Said]],
        *,
        classes: Sequence[str] | None = None,
        batch_size: int = 16,
        least_confidence: float = 0.0,
        soft: bool = True,
        weight: float = 1.0,
        price: float | None = None,
        retries: int = 2,
        pause: float = 1.0,
        capacity: int = 10_000,
        annotator: str = "model",
        sleep: Callable[[float], Any] = time.sleep,
    ) -> None:
        who = type(self).__name__
        if not callable(function):
            raise SettingError(
                f"{who}: the function must take a list of sample names and return a list of "
                f"answers, got {function!r}."
            )
        check_count(who, "batch_size", batch_size, at_least=1)
        check_count(who, "retries", retries, at_least=0)
        check_count(who, "capacity", capacity, at_least=0)
        check_range(who, "least_confidence", least_confidence, at_least=0, at_most=1)
        check_range(who, "weight", weight, at_least=0)
        check_range(who, "pause", pause, at_least=0)
        if price is not None:
            check_range(who, "price", price, at_least=0)
        self.function = function
        self.classes = None if classes is None else check_classes(who, classes)
        self.batch_size = batch_size
        self.least_confidence = least_confidence
        self.soft = soft
        self.weight = weight
        self.price = price
        self.retries = retries
        self.pause = pause
        self.capacity = capacity
        self.annotator = annotator
        self.sleep = sleep
        self.calls = 0  # calls of the function, including failed ones
        self._open: list[Query] = []
        self._ready: list[Answer] = []
        self._cache: dict[SampleId, Answer] = {}

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been collected."""
        return len(self._open) + len(self._ready)

    def ask(self, queries: Sequence[Query]) -> None:
        """Store questions for the next collect."""
        self._open.extend(queries)

    def collect(self) -> tuple[Answer, ...]:
        """Call the model for samples it has not seen, and return all answers."""
        while self._open:
            batch = self._open[: self.batch_size]
            self._ready += self._answers(batch)
            del self._open[: len(batch)]
        answers, self._ready = tuple(self._ready), []
        return answers

    def state_dict(self) -> dict[str, Any]:
        return {
            "open": pack_queries(self._open),
            "ready": pack_answers(self._ready),
            "cache": pack_answers(self._cache.values()),
            "calls": self.calls,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(type(self).__name__, state, ("open", "ready", "cache", "calls"))
        self._open = unpack_queries(state["open"])
        self._ready = unpack_answers(state["ready"])
        self._cache = {each.query.sample: each for each in unpack_answers(state["cache"])}
        self.calls = state["calls"]

    def _answers(self, batch: Sequence[Query]) -> list[Answer]:
        known = {query.sample: self._cache.get(query.sample) for query in batch}
        new = [sample for sample, answer in known.items() if answer is None]
        fresh = dict(zip(new, self._call(new), strict=True)) if new else {}
        found = {**known, **fresh}
        for sample, answer in fresh.items():
            if answer is not None:
                self._keep(sample, answer)
        return [self._answer(query, found[query.sample]) for query in batch]

    def _call(self, samples: Sequence[SampleId]) -> Sequence[Answer | None]:
        """Return what the model says about samples; None for each if it cannot be reached."""
        for attempt in range(self.retries + 1):
            if attempt:
                self.sleep(self.pause * 2 ** (attempt - 1))
            self.calls += 1
            try:
                said = list(self.function(list(samples)))
            except OSError as error:
                log.warning("%s failed (attempt %d): %s", self.annotator, attempt + 1, error)
                continue
            return self._read(samples, said)
        return [None] * len(samples)

    def _read(self, samples: Sequence[SampleId], said: Sequence[Said]) -> list[Answer | None]:
        who = type(self).__name__
        if len(said) != len(samples):
            raise LabelError(
                f"{who}: {self.annotator} gave {len(said)} answers about {len(samples)} samples. "
                f"It must give one for each, in the same order."
            )
        return [
            answer_from(who, Query(sample, 0), each, self.annotator, self.classes)
            for sample, each in zip(samples, said, strict=True)
        ]

    def _keep(self, sample: SampleId, answer: Answer) -> None:
        self._cache[sample] = answer
        while len(self._cache) > self.capacity:
            del self._cache[next(iter(self._cache))]

    def _answer(self, query: Query, said: Answer | None) -> Answer:
        """Build the answer to a question from what the model said about its sample."""
        if said is None or not said.says_something:
            return Answer.skipped(query, self.annotator)
        label, confidence = said.label, 1.0
        if said.chances is not None:
            likeliest = max(said.chances)
            confidence = likeliest / sum(said.chances)
            label = None if self.soft else said.chances.index(likeliest)
        if confidence < self.least_confidence:
            return Answer.skipped(query, self.annotator)
        answer = replace(said, query=query)
        if label is not None:
            answer = Answer.knowing(query, label, self.annotator)
        return replace(answer, weight=self.weight, cost=self.price)
