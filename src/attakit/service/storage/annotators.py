"""Statistics per annotator: how many answers, and how often they agree with others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Row, Select, select

from attakit.service.storage.deciding import is_vote
from attakit.service.storage.tables import answers, questions


@dataclass(frozen=True, slots=True)
class Person:
    """Statistics of one person's answers."""

    who: str
    answers: int
    skipped: int
    flagged: int
    last: float  # time of the last answer
    compared: int  # answers to questions that others answered too
    agreed: int  # of these, equal to another person's
    audited: int  # audit questions answered with a class
    model_agreed: int  # of these, equal to the asking model's first guess


def votes_with_questions(limit: int) -> Select[Any]:
    """Select the newest votes with their questions, in the order of questions."""
    newest = (
        select(
            answers.c.answer,
            answers.c.question,
            answers.c.annotator,
            answers.c.kind,
            answers.c.label,
            answers.c.at,
            answers.c.flagged,
            questions.c.purpose,
            questions.c.guesses,
        )
        .join(questions, questions.c.question == answers.c.question)
        .where(is_vote(), questions.c.state != "forgotten")
        .order_by(answers.c.answer.desc())
        .limit(limit)
        .subquery()
    )
    return select(newest).order_by(newest.c.question, newest.c.answer)


def find_people(rows: Iterable[Row[Any]]) -> tuple[Person, ...]:
    """Group votes, sorted by question, by person. The most active person comes first."""
    counts: dict[str, dict[str, float]] = {}
    for _, group in groupby(rows, lambda row: row.question):
        together = list(group)
        for row in together:
            others = [one for one in together if one.annotator != row.annotator]
            _count(counts.setdefault(row.annotator, {}), row, others)
    found = [_person(who, numbers) for who, numbers in counts.items()]
    return tuple(sorted(found, key=lambda one: (-one.answers, one.who)))


def _count(numbers: dict[str, float], row: Row[Any], others: list[Row[Any]]) -> None:
    said = row.kind != "skip"
    choices = {(one.kind, one.label) for one in others if one.kind != "skip"}
    audited = row.purpose == "audit" and row.label is not None
    changes = {
        "answers": 1,
        "skipped": not said,
        "flagged": bool(row.flagged),
        "compared": said and bool(choices),
        "agreed": said and (row.kind, row.label) in choices,
        "audited": audited,
        "model_agreed": audited and bool(row.guesses) and row.guesses[0][0] == row.label,
    }
    for name, change in changes.items():
        numbers[name] = numbers.get(name, 0) + change
    numbers["last"] = max(numbers.get("last", 0.0), row.at)


def _person(who: str, numbers: dict[str, float]) -> Person:
    last = numbers.pop("last")
    return Person(who, **{name: int(value) for name, value in numbers.items()}, last=last)
