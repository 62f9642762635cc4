"""Simulated people who answer the questions of a service, late, or not at all."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from simulated_service import World

from attakit.randomness import generator
from attakit.service.storage import Question
from attakit.service.storage.questions import QuestionStore


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as the person sent it."""

    question: int
    annotator: str
    kind: str
    label: int | None
    key: str

    def send(self, questions: QuestionStore) -> str:
        """Send an answer, and return its outcome."""
        return questions.answer(self.question, self.annotator, self.kind, self.label, self.key)  # type: ignore[arg-type]


@dataclass
class Person:
    """Someone who looks at one question at a time."""

    name: str
    question: Question | None = None
    until: float = 0.0  # thinks, or is away


@dataclass
class People:
    """Lease questions and answer them, some late, wrongly, twice or never.

    `accepted` holds the answers that the service has accepted, without undone ones; `outcomes`
    counts its responses.
    """

    world: World
    questions: QuestionStore
    lease_seconds: float
    classes: int
    truth: Mapping[str, int]
    clock: Callable[[], float]
    accepted: dict[str, Said] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.persons = [Person(f"person {number}") for number in range(self.world.people)]
        self._keys = itertools.count()

    def act(self) -> None:
        """Let each person act if it is their time."""
        for person in self.persons:
            if self.clock() < person.until:
                continue
            if person.question is None:
                self._look(person)
            else:
                self._answer(person, person.question)

    def _look(self, person: Person) -> None:
        lease = self.questions.lease(person.name)
        if lease is None:
            return
        question = lease.question.question
        draw = generator(self.world.seed, f"thinking {person.name}", question)
        person.until = self.clock() + draw.exponential(self.world.thinking)
        if generator(self.world.seed, "avoided", question).random() < self.world.avoided:
            person.until += self.lease_seconds  # goes away, and lets the lease run out
        else:
            person.question = lease.question

    def _answer(self, person: Person, question: Question) -> None:
        number = next(self._keys)
        draw = generator(self.world.seed, "answer", number)
        kind, label = self._choose(question, draw)
        said = Said(question.question, person.name, kind, label, f"answer {number}")
        outcome = said.send(self.questions)
        self.outcomes[outcome] += 1
        person.question = None
        if draw.random() < self.world.twice:
            self.outcomes[f"sent twice, then {said.send(self.questions)}"] += 1
        if outcome != "accepted":
            return
        if draw.random() < self.world.undone:
            lease = self.questions.undo(person.name, f"undo {number}")
            person.question = lease and lease.question
            self.outcomes["undone"] += 1
        else:
            self.accepted[said.key] = said

    def _choose(self, question: Question, draw: np.random.Generator) -> tuple[str, int | None]:
        chance = draw.random()
        if chance < self.world.skipped:
            return "skip", None
        if chance < self.world.skipped + self.world.no_class:
            return "none", None
        label = self.truth[question.sample]
        if draw.random() < self.world.wrong:
            label = (label + int(draw.integers(1, self.classes))) % self.classes
        return "label", label
