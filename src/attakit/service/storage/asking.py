"""How questions are asked, and leased to as many people as needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, exists, func, select

from attakit.errors import LabelError
from attakit.service.storage.deciding import is_vote
from attakit.service.storage.rows import LabelRules, Lease, Question, field_values, read_row
from attakit.service.storage.tables import add_event, answers, leases, questions, samples

_NO_GUESS: dict[str, Any] = {"source_guess": None, "source_entropy": None}
MOST_LEASES = 5  # per person: the question shown, two ahead, and two that were just answered


def put_question(connection: Connection, new: Question, places: int, now: float) -> int:
    """Store a question, unless it exists already, and return its number."""
    same = and_(
        questions.c.sample == new.sample,
        questions.c.turn == new.turn,
        questions.c.purpose == new.purpose,
    )
    known = connection.scalar(select(questions.c.question).where(same))
    if known is not None:
        return int(known)
    values = {**field_values(new, "question"), "state": "open", "wanted": places}
    values |= _close_if_forgotten(connection, new.sample, now)
    inserted = connection.execute(questions.insert().values(values)).inserted_primary_key
    assert inserted is not None
    number = int(inserted[0])
    details = {name: values[name] for name in ("sample", "purpose", "version", "score")}
    add_event(connection, now, "question", "learner", question=number, **details)
    return number


def _close_if_forgotten(connection: Connection, sample: str, now: float) -> dict[str, Any]:
    """Close the question at once if its sample was forgotten meanwhile."""
    row = connection.execute(
        select(samples.c.forgotten).where(samples.c.sample == sample)
    ).one_or_none()
    if row is None:
        raise LabelError(
            f"Questions: cannot ask about sample {sample!r}, which is unknown. Ask about samples "
            "that were served."
        )
    if row.forgotten is None:
        return {}
    return {"state": "forgotten", "settled": now, "guesses": [], "wanted": 0} | _NO_GUESS


def lease_question(
    connection: Connection,
    annotator: str,
    rules: LabelRules,
    now: float,
    besides: Sequence[int] = (),
) -> Lease | None:
    """Lease the oldest question with a free place to an annotator, or renew the one they hold.

    `besides` are questions that their page already holds. They keep those and get another one, up
    to the limit per person.
    """
    connection.execute(leases.delete().where(leases.c.until <= now))
    if len(_kept(connection, annotator, besides)) >= MOST_LEASES:
        return None
    others = select(questions).where(
        _can_be_shown(rules, now), questions.c.question.not_in(besides)
    )
    held = connection.execute(_held(others, annotator)).one_or_none()
    row = held or connection.execute(_oldest_free(others, annotator)).one_or_none()
    if row is None:
        return None
    until = give_lease(connection, row.question, annotator, rules, now, besides)
    return Lease(read_row(Question, row), annotator, until)


def give_lease(
    connection: Connection,
    question: int,
    annotator: str,
    rules: LabelRules,
    now: float,
    besides: Sequence[int] = (),
) -> float:
    """Lease a question to an annotator. Of the leases in `besides`, keep the first few they hold;
    drop the rest. Return the expiry time."""
    until = now + rules.lease_seconds
    others = [other for other in besides if other != question]
    kept = _kept(connection, annotator, others)[: MOST_LEASES - 1]
    connection.execute(
        leases.delete().where(leases.c.annotator == annotator, leases.c.question.not_in(kept))
    )
    connection.execute(leases.insert().values(question=question, annotator=annotator, until=until))
    return until


def find_lease(
    connection: Connection, question: Question, annotator: str, now: float
) -> Lease | None:
    """Return an annotator's lease on a question, if it has not expired."""
    this = (leases.c.question == question.question, leases.c.annotator == annotator)
    until = connection.scalar(select(leases.c.until).where(*this, leases.c.until > now))
    return None if until is None else Lease(question, annotator, until)


def drop_lease(connection: Connection, question: int, annotator: str) -> None:
    """End the lease of an annotator on a question, if there is one."""
    this = (leases.c.question == question, leases.c.annotator == annotator)
    connection.execute(leases.delete().where(*this))


def _kept(connection: Connection, annotator: str, besides: Sequence[int]) -> list[int]:
    """Return which of the other questions an annotator holds, in the given order."""
    theirs = select(leases.c.question).where(leases.c.annotator == annotator)
    held = {*connection.scalars(theirs)}
    return [question for question in dict.fromkeys(besides) if question in held]


def _held(some: Select[Any], annotator: str) -> Select[Any]:
    held = some.join(leases, leases.c.question == questions.c.question)
    return held.where(leases.c.annotator == annotator).limit(1)


def _oldest_free(some: Select[Any], annotator: str) -> Select[Any]:
    shown = (
        select(func.count())
        .select_from(leases)
        .where(leases.c.question == questions.c.question)
        .scalar_subquery()
    )
    free = some.where(
        questions.c.wanted > shown,
        ~_has_voted(annotator),
    )
    return free.order_by(questions.c.question).limit(1)


def _can_be_shown(rules: LabelRules, now: float) -> ColumnElement[bool]:
    return and_(questions.c.state == "open", questions.c.at > now - rules.expiry_seconds)


def _has_voted(annotator: str) -> ColumnElement[bool]:
    """Select whether a person has answered about this sample, in this question or another."""
    other = questions.alias("other")
    return exists().where(
        answers.c.question == other.c.question,
        other.c.sample == questions.c.sample,
        answers.c.annotator == annotator,
        is_vote(),
    )


def drop_surplus_leases(connection: Connection, question: int, places: int, now: float) -> None:
    """Keep no more live leases of a question than there are places; the newest end first."""
    connection.execute(leases.delete().where(leases.c.until <= now))
    held = select(leases.c.annotator).where(leases.c.question == question)
    oldest_first = held.order_by(leases.c.until, leases.c.annotator)
    surplus: Sequence[str] = connection.scalars(oldest_first).all()[places:]
    if surplus:
        connection.execute(
            leases.delete().where(leases.c.question == question, leases.c.annotator.in_(surplus))
        )
