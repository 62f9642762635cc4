"""The answers that count: accepted and not withdrawn."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, exists, select

from attakit.service.storage.deciding import Vote
from attakit.service.storage.tables import answers

_undo = answers.alias("undo")


def is_withdrawn() -> ColumnElement[bool]:
    """Whether a later row takes an answer back."""
    return exists().where(_undo.c.withdraws == answers.c.answer)


def is_vote() -> ColumnElement[bool]:
    """Whether a row of the answers counts."""
    return and_(answers.c.kind != "undo", answers.c.outcome == "accepted", ~is_withdrawn())


def votes_on(connection: Connection, question: int) -> tuple[Vote, ...]:
    """The votes on a question, in the order in which they came."""
    query = select(answers).where(answers.c.question == question, is_vote())
    rows = connection.execute(query.order_by(answers.c.answer))
    return tuple(Vote(row.annotator, row.kind, row.label, row.at) for row in rows)
