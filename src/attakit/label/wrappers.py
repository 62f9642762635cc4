"""Wrappers that make any oracle late, wrong or unwilling, like people.

They nest in any order. Every random choice depends only on the seed and the question. The order of
questions or a resumed run does not change it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attakit.errors import LabelError, check_count, check_range
from attakit.label.ledger import EXPIRED
from attakit.label.packing import (
    check_state,
    pack_answers,
    pack_queries,
    unpack_answers,
    unpack_queries,
)
from attakit.queries import Answer, Oracle, Query
from attakit.randomness import generator


class _Changed(ABC):
    """Passes questions on and changes a share of the answers on their way back."""

    def __init__(self, oracle: Oracle, *, rate: float, seed: int = 0) -> None:
        check_range(type(self).__name__, "rate", rate, at_least=0, at_most=1)
        self.oracle = oracle
        self.rate = rate
        self.seed = seed

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been collected."""
        return self.oracle.pending

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask questions."""
        self.oracle.ask(queries)

    def collect(self) -> tuple[Answer, ...]:
        """Return the answers that are ready, some of them changed."""
        return tuple(self._change(answer) for answer in self.oracle.collect())

    def state_dict(self) -> dict[str, Any]:
        return {"oracle": self.oracle.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(type(self).__name__, state, ("oracle",))
        self.oracle.load_state_dict(state["oracle"])

    @abstractmethod
    def _change(self, answer: Answer) -> Answer:
        """Change an answer into what this oracle says instead."""


class Noisy(_Changed):
    """Replaces some labels by a wrong one, drawn uniformly from the other classes.

    A yes/no question gets the opposite answer instead. Candidate sets, exclusions and soft answers
    stay unchanged.

    Parameters
    ----------
    oracle
        The oracle that gives the labels.
    rate
        Share of labels that turn wrong, from 0 to 1.
    classes
        How many classes there are.
    seed
        Seed of the draw. If you nest wrappers of the same kind, give them different seeds.

    Examples
    --------
    >>> from attakit.label.known import KnownLabels
    >>> oracle = Noisy(KnownLabels({"a": 1}), rate=1, classes=2)
    >>> oracle.ask([Query("a", step=0)])
    >>> [answer.label for answer in oracle.collect()]
    [0]
    """

    def __init__(self, oracle: Oracle, *, rate: float, classes: int, seed: int = 0) -> None:
        super().__init__(oracle, rate=rate, seed=seed)
        check_count("Noisy", "classes", classes, at_least=2)
        self.classes = classes

    def _change(self, answer: Answer) -> Answer:
        if answer.kind in ("yes", "no"):
            return self._flipped(answer)
        if answer.label is None:
            return answer
        if not 0 <= answer.label < self.classes:
            raise LabelError(
                f"Noisy: the label of sample {answer.query.sample!r} is {answer.label}, but there "
                f"are {self.classes} classes. Pass the right number of classes."
            )
        draw = _generator_for(answer.query, self.seed, "noise")
        if draw.random() >= self.rate:
            return answer
        shift = 1 + int(draw.integers(self.classes - 1))
        return replace(answer, label=(answer.label + shift) % self.classes)

    def _flipped(self, answer: Answer) -> Answer:
        if _generator_for(answer.query, self.seed, "noise").random() >= self.rate:
            return answer
        turn = Answer.no if answer.kind == "yes" else Answer.yes
        changed = turn(answer.query, answer.annotator)
        return replace(changed, weight=answer.weight, cost=answer.cost)


class Skipping(_Changed):
    """Skips some questions.

    Parameters
    ----------
    oracle
        The oracle that gives the labels.
    rate
        Share of questions that are skipped, from 0 to 1.
    seed
        Seed of the draw. If you nest wrappers of the same kind, give them different seeds.

    Examples
    --------
    >>> from attakit.label.known import KnownLabels
    >>> oracle = Skipping(KnownLabels({"a": 1}), rate=1)
    >>> oracle.ask([Query("a", step=0)])
    >>> [answer.label for answer in oracle.collect()]
    [None]
    """

    def _change(self, answer: Answer) -> Answer:
        skips = _generator_for(answer.query, self.seed, "skip").random() < self.rate
        return Answer.skipped(answer.query, answer.annotator) if skips else answer


class Delayed:
    """Hands answers over a few collects after they were ready.

    Parameters
    ----------
    oracle
        The oracle that gives the answers.
    rounds
        How many collects later each answer comes; 0 means at once.
    jitter
        Random extra delay: up to this many collects, drawn for each question. Answers then come out
        of order.
    seed
        Seed of the draw.

    Examples
    --------
    >>> from attakit.label.known import KnownLabels
    >>> oracle = Delayed(KnownLabels({"a": 1}), rounds=2)
    >>> oracle.ask([Query("a", step=0)])
    >>> [len(oracle.collect()) for _ in range(4)]
    [0, 0, 1, 0]
    """

    def __init__(self, oracle: Oracle, *, rounds: int, jitter: int = 0, seed: int = 0) -> None:
        check_count("Delayed", "rounds", rounds, at_least=0)
        check_count("Delayed", "jitter", jitter, at_least=0)
        self.oracle = oracle
        self.rounds = rounds
        self.jitter = jitter
        self.seed = seed
        self._open: dict[Query, None] = {}
        self._held: list[tuple[int, Answer]] = []  # collects left, answer

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been collected."""
        return len(self._open)

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask questions."""
        self.oracle.ask(queries)
        self._open.update(dict.fromkeys(queries))

    def collect(self) -> tuple[Answer, ...]:
        """Return the answers that are due."""
        ready = [(self._delay(answer.query), answer) for answer in self.oracle.collect()]
        held = self._held + ready
        due = tuple(answer for wait, answer in held if wait == 0)
        self._held = [(wait - 1, answer) for wait, answer in held if wait > 0]
        for answer in due:
            self._open.pop(answer.query, None)
        return due

    def state_dict(self) -> dict[str, Any]:
        return {
            "oracle": self.oracle.state_dict(),
            "open": pack_queries(self._open),
            "waits": [wait for wait, _ in self._held],
            "held": pack_answers(answer for _, answer in self._held),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Delayed", state, ("oracle", "open", "waits", "held"))
        self.oracle.load_state_dict(state["oracle"])
        self._open = dict.fromkeys(unpack_queries(state["open"]))
        self._held = list(zip(state["waits"], unpack_answers(state["held"]), strict=True))

    def _delay(self, query: Query) -> int:
        if self.jitter == 0:
            return self.rounds
        return self.rounds + int(
            _generator_for(query, self.seed, "delay").integers(self.jitter + 1)
        )


class Expiring:
    """Gives up on questions that stay unanswered for too long.

    Parameters
    ----------
    oracle
        The oracle that gives the answers. An answer after the expiry is passed on, and the ledger
        ignores it.
    rounds
        Number of collects after which an unanswered question is returned as expired (no label).

    Examples
    --------
    >>> from attakit.label.known import KnownLabels
    >>> oracle = Expiring(Delayed(KnownLabels({"a": 1}), rounds=2), rounds=1)
    >>> oracle.ask([Query("a", step=0)])
    >>> [[answer.label for answer in oracle.collect()] for _ in range(3)]
    [[None], [], [1]]
    """

    def __init__(self, oracle: Oracle, *, rounds: int) -> None:
        check_count("Expiring", "rounds", rounds, at_least=1)
        self.oracle = oracle
        self.rounds = rounds
        self._left: dict[Query, int] = {}  # collects until expiry, in the order of asking

    @property
    def pending(self) -> int:
        """Number of questions that are neither answered nor expired."""
        return len(self._left)

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask questions, each with its time to live."""
        self.oracle.ask(queries)
        self._left.update(dict.fromkeys(queries, self.rounds))

    def collect(self) -> tuple[Answer, ...]:
        """Return the answers that are ready, then the questions that expire now."""
        answers = tuple(self.oracle.collect())
        for answer in answers:
            self._left.pop(answer.query, None)
        expired = tuple(
            Answer.skipped(query, EXPIRED) for query, left in self._left.items() if left <= 1
        )
        self._left = {query: left - 1 for query, left in self._left.items() if left > 1}
        return answers + expired

    def state_dict(self) -> dict[str, Any]:
        return {
            "oracle": self.oracle.state_dict(),
            "queries": pack_queries(self._left),
            "left": list(self._left.values()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Expiring", state, ("oracle", "queries", "left"))
        self.oracle.load_state_dict(state["oracle"])
        self._left = dict(zip(unpack_queries(state["queries"]), state["left"], strict=True))


def _generator_for(query: Query, seed: int, purpose: str) -> np.random.Generator:
    # The zero keeps the draws of earlier versions, where it numbered repeated questions.
    return generator(seed, purpose, f"{query.sample}/{query.step}/0")
