"""CheckStore: questions that check people, about known examples or asked a second time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, select

from attakit.service.storage.database import Database
from attakit.service.storage.deciding import is_vote
from attakit.service.storage.retention import is_answered
from attakit.service.storage.rows import AskedCounts, Question
from attakit.service.storage.tables import answers, questions

_first = questions.alias("first")  # the audit question about the same sample
_others = answers.alias("others")


class CheckStore:
    """Reads the questions with the purpose "check", and counts questions by purpose."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> tuple[Question, ...]:
        """Return the questions that check people, in any state and in the order of asking."""
        checks = select(questions).where(questions.c.purpose == "check")
        return self._database.find(Question, checks.order_by(questions.c.question))

    def pairs(self) -> tuple[tuple[int | None, int | None], ...]:
        """Return what two people said about samples that were asked about twice.

        The first answer is that of the audit. None is "none of these".
        """
        query = (
            select(_first.c.label.label("before"), questions.c.label)
            .join(_first, _first.c.sample == questions.c.sample)
            .where(questions.c.purpose == "check", is_answered(), ~_same_person())
            .where(_first.c.purpose == "audit", _first.c.state.in_(("answered", "none")))
            .order_by(questions.c.question)
        )
        with self._database.read() as connection:
            return tuple((row.before, row.label) for row in connection.execute(query))

    def asked_by_purpose(self) -> dict[str, AskedCounts]:
        """Count the questions asked so far, in any state."""
        query = select(questions.c.purpose, func.count(), func.count(questions.c.proposed))
        query = query.group_by(questions.c.purpose)
        with self._database.read() as connection:
            rows: Sequence[Any] = connection.execute(query).all()
        return {row[0]: AskedCounts(classes=row[1] - row[2], yes_no=row[2]) for row in rows}

    def people(self) -> int:
        """Count the people who gave answers that count: 0, 1, or 2 for more."""
        query = select(answers.c.annotator).where(is_vote()).distinct().limit(2)
        with self._database.read() as connection:
            return len(connection.execute(query).all())


def _same_person() -> ColumnElement[bool]:
    """Select whether one person answered both questions about a sample."""
    return exists().where(
        and_(answers.c.question == questions.c.question, is_vote()),
        _others.c.question == _first.c.question,
        _others.c.annotator == answers.c.annotator,
    )
