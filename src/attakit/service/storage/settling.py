"""How questions are closed: by what people said, or because nobody said enough in time."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, or_, select

from attakit.service.storage.deciding import decide
from attakit.service.storage.events import add_event
from attakit.service.storage.records import LabelRules
from attakit.service.storage.tables import leases, questions
from attakit.service.storage.votes import votes_on

_STATES = {"label": "answered", "skip": "skipped", "none": "none"}


def is_due(rules: LabelRules, now: float) -> ColumnElement[bool]:
    """Whether a question can be closed: decided long enough ago, or expired with nobody at it."""
    shown = exists().where(leases.c.question == questions.c.question, leases.c.until > now)
    ripe = questions.c.decided <= now - rules.settle_seconds
    stale = questions.c.at <= now - rules.expiry_seconds
    return and_(
        questions.c.state == "open",
        or_(ripe, and_(questions.c.decided.is_(None), stale, ~shown)),
    )


def settle_due(connection: Connection, rules: LabelRules, now: float) -> int:
    """Close every question that is due, and return how many these are."""
    due = connection.execute(
        select(questions).where(is_due(rules, now)).order_by(questions.c.question)
    ).all()
    for row in due:
        _settle(connection, row, rules, now)
    return len(due)


def _settle(connection: Connection, row: Row[Any], rules: LabelRules, now: float) -> None:
    choice = decide(rules, votes_on(connection, row.question)).choice
    state, label = ("expired", None) if choice is None else (_STATES[choice[0]], choice[1])
    this = questions.update().where(questions.c.question == row.question)
    connection.execute(this.values(state=state, label=label, settled=now, wanted=0))
    connection.execute(leases.delete().where(leases.c.question == row.question))
    add_event(connection, now, "settled", "service", question=row.question, state=state)
