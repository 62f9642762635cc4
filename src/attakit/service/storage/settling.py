"""Close questions and choose their labels: by votes, or by people's reliability."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, or_, select

from attakit.label.dawid_skene import Consensus, estimate_consensus, weighted_class
from attakit.label.dawid_skene import Vote as ClassVote
from attakit.service.storage.deciding import STATES, decide, is_vote, votes_on
from attakit.service.storage.retention import asks_class
from attakit.service.storage.rows import LabelRules
from attakit.service.storage.tables import add_event, answers, leases, put_fact, questions

ANNOTATORS = "annotators"  # the fact that stores people's reliability
_NEWEST = 1000  # newest answers used: people change, and it must be fast


def is_due(rules: LabelRules, now: float) -> ColumnElement[bool]:
    """Select whether a question can be closed: decided long enough ago, or expired and unleased."""
    shown = exists().where(leases.c.question == questions.c.question, leases.c.until > now)
    ripe = questions.c.decided <= now - rules.settle_seconds
    stale = questions.c.at <= now - rules.expiry_seconds
    return and_(
        questions.c.state == "open",
        or_(ripe, and_(questions.c.decided.is_(None), stale, ~shown)),
    )


def settle_due(connection: Connection, rules: LabelRules, now: float) -> int:
    """Close every question that is due, and return their number."""
    due = connection.execute(
        select(questions).where(is_due(rules, now)).order_by(questions.c.question)
    ).all()
    found = _estimate(connection, rules) if due and rules.places > 1 else Consensus({}, {})
    for row in due:
        _settle(connection, row, rules, now, found)
    return len(due)


def _settle(
    connection: Connection, row: Row[Any], rules: LabelRules, now: float, found: Consensus
) -> None:
    choice = decide(rules, votes_on(connection, row.question), row.proposed).choice
    state, label = ("expired", None) if choice is None else (STATES[choice[0]], choice[1])
    weight, chances = None, None
    if rules.policy == "reliability" and state == "answered" and row.question in found.chances:
        chances = found.chances[row.question]
        label, weight = weighted_class(chances)
    this = questions.update().where(questions.c.question == row.question)
    connection.execute(this.values(state=state, label=label, weight=weight, chances=chances))
    connection.execute(this.values(settled=now, wanted=0))
    connection.execute(leases.delete().where(leases.c.question == row.question))
    add_event(connection, now, "settled", "service", question=row.question, state=state)


def _estimate(connection: Connection, rules: LabelRules) -> Consensus:
    """Estimate labels and reliability from the newest answers, and store it for the dashboard."""
    query = (
        select(answers.c.question, answers.c.annotator, answers.c.label)
        .join(questions, questions.c.question == answers.c.question)
        .where(is_vote(), answers.c.label.is_not(None), asks_class())
        .order_by(answers.c.answer.desc())
        .limit(_NEWEST)
    )
    votes = [ClassVote(*row) for row in connection.execute(query)]
    classes = rules.classes or max((vote.label for vote in votes), default=0) + 1
    found = estimate_consensus(votes, max(2, classes))
    people = {name: [one.accuracy, one.answers] for name, one in found.annotators.items()}
    put_fact(connection, ANNOTATORS, people)
    return found
