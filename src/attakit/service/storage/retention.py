"""How samples leave the database: beyond a limit, or because they must be forgotten."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Subquery,
    and_,
    cast,
    exists,
    func,
    literal,
    null,
    or_,
    select,
)

from attakit.service.storage.rows import KNOWN
from attakit.service.storage.tables import (
    add_event,
    answers,
    events,
    leases,
    questions,
    samples,
    turns,
)

FORGOTTEN_CLASS = -1  # replaces a class that was forgotten
PAID_STATES = ("open", "answered", "no", "none", "forgotten")
# What remains of a forgotten sample.
_NOTHING = {
    "content": None,
    "size": 0,
    "guess": FORGOTTEN_CLASS,
    "confidence": 0.0,
    "entropy": 0.0,
    "caller_id": None,
    "text": None,
    "notes": None,
}


def remove_contents(
    connection: Connection,
    images: int,
    oldest: float,
    size: int,
    saved_turn: int,
    audit_window: int,
) -> int:
    """Remove the oldest unneeded contents until the limits hold or none is left.

    The arguments are those of `SampleStore.clean`, as a time and in bytes.
    """
    kept = connection.execute(
        select(func.count(), func.coalesce(func.sum(samples.c.size), 0)).where(
            samples.c.content.is_not(None)
        )
    ).one()
    spare = _spare(saved_turn, audit_window)
    doomed = select(spare.c.number).where(
        or_(
            spare.c.rank <= kept[0] - images,
            spare.c.size_before < kept[1] - size,
            spare.c.at < oldest,
        )
    )
    removed = samples.update().where(samples.c.number.in_(doomed))
    gone = removed.values(content=None, size=0, text=None, notes=None)
    count = connection.execute(gone).rowcount
    _remove_traces(connection, oldest, saved_turn)
    return count


def _remove_traces(connection: Connection, oldest: float, saved_turn: int) -> None:
    """Remove rows without content that were never asked about, and old lists of samples."""
    connection.execute(
        samples.delete().where(
            samples.c.content.is_(None),
            samples.c.forgotten.is_(None),
            _is_saved(saved_turn),
            ~exists().where(questions.c.sample == samples.c.sample),
        )
    )
    old = and_(turns.c.number <= saved_turn, turns.c.at < oldest)
    connection.execute(turns.update().where(old).values(samples=[]))


def _is_saved(saved_turn: int) -> ColumnElement[bool]:
    """Select whether a learner that resumes from its checkpoint no longer needs a sample."""
    return or_(samples.c.turn.is_(None), samples.c.turn <= saved_turn)


def _spare(saved_turn: int, audit_window: int) -> Subquery:
    """Select removable contents, with the number and size of the older ones."""
    order = samples.c.number
    total = func.sum(samples.c.size).over(order_by=order)
    return (
        select(
            samples.c.number,
            samples.c.at,
            func.row_number().over(order_by=order).label("rank"),
            (total - samples.c.size).label("size_before"),
        )
        .where(
            samples.c.content.is_not(None),
            _is_saved(saved_turn),
            or_(samples.c.turn.is_(None), samples.c.turn != KNOWN),
            ~exists().where(questions.c.sample == samples.c.sample, questions.c.state == "open"),
            samples.c.sample.not_in(_audited_samples(audit_window)),
        )
        .subquery()
    )


def _audited_samples(window: int) -> ColumnElement[str]:
    newest = (
        select(questions.c.sample)
        .where(is_audited())
        .order_by(questions.c.settled.desc(), questions.c.question.desc())
        .limit(window)
        .subquery()
    )
    return select(newest.c.sample).scalar_subquery()


def is_audited() -> ColumnElement[bool]:
    """Select whether a question is an answered audit question."""
    return and_(questions.c.purpose == "audit", is_answered())


def is_answered() -> ColumnElement[bool]:
    """Select whether a question has an answer that counts."""
    said = questions.c.state.in_(("answered", "none", "no"))
    return and_(questions.c.settled.is_not(None), said)


def asks_class() -> ColumnElement[bool]:
    """Select whether a question asks for the class, not whether a proposed one is right."""
    return questions.c.proposed.is_(None)


def forget_sample(connection: Connection, sample: str, who: str, now: float) -> bool:
    """Remove content, guesses and labels, and close open questions; False if nothing exists.

    The row stays, so that the log makes sense. A refunded question stays refunded: a learner that
    replays its log must find the same budget.
    """
    known = samples.update().where(samples.c.sample == sample, samples.c.forgotten.is_(None))
    if not connection.execute(known.values(**_NOTHING, forgotten=now)).rowcount:
        return False
    about = select(questions.c.question).where(questions.c.sample == sample)
    connection.execute(leases.delete().where(leases.c.question.in_(about)))
    _unsay(connection, about)
    asked = questions.update().where(questions.c.sample == sample)
    connection.execute(asked.where(questions.c.settled.is_(None)).values(settled=now))
    refunded = asked.where(questions.c.refunded.is_not(None))
    connection.execute(refunded.values(state="skipped", refunded=null()))  # the answer is gone
    connection.execute(asked.where(questions.c.state.in_(PAID_STATES)).values(state="forgotten"))
    connection.execute(asked.values(label=null(), weight=null(), chances=null()))
    connection.execute(asked.values(guesses=[], wanted=0))
    # The proposed flag stays, because it determines the question's cost.
    connection.execute(asked.where(~asks_class()).values(proposed=FORGOTTEN_CLASS))
    connection.execute(asked.values(source_guess=null(), source_entropy=null()))
    add_event(connection, now, "forgotten", who, sample=sample)
    return True


def _unsay(connection: Connection, about: Select[Any]) -> None:
    """Remove what people said. "None of these" and "no" become a skip, which says nothing.

    Keys are removed too: the key of an imported answer is derived from its label.
    """
    said = answers.update().where(answers.c.question.in_(about))
    key = literal("forgotten ") + cast(answers.c.answer, String)
    connection.execute(said.values(label=null(), key=key, comment=null(), flagged=null()))
    connection.execute(said.where(answers.c.kind.in_(("none", "no"))).values(kind="skip"))
    closed = select(events.c.number, events.c.details).where(
        events.c.kind == "settled",
        events.c.details["question"].as_integer().in_(about),
        events.c.details["state"].as_string().in_(("none", "no")),
    )
    for number, details in connection.execute(closed).all():
        event = events.update().where(events.c.number == number)
        connection.execute(event.values(details={**details, "state": "skipped"}))
