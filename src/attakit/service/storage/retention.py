"""How contents leave the database when there are too many, too old or too large ones."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, Subquery, and_, exists, func, or_, select

from attakit.service.storage.tables import questions, samples, turns


def remove_contents(
    connection: Connection,
    images: int,
    oldest: float,
    size: int,
    saved_turn: int,
    audit_window: int,
) -> int:
    """Remove the oldest contents that nobody needs, until the limits hold or none is left.

    Parameters
    ----------
    connection
        In a writing transaction.
    images, oldest, size
        How many contents may stay, since when, and bytes of all.
    saved_turn
        Last turn whose samples can be had from the learner's checkpoint.
    audit_window
        Newest settled audit questions, whose samples are needed.
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
    removed = samples.update().where(samples.c.number.in_(doomed)).values(content=None, size=0)
    count = connection.execute(removed).rowcount
    _remove_traces(connection, oldest, saved_turn)
    return count


def _remove_traces(connection: Connection, oldest: float, saved_turn: int) -> None:
    """Remove rows that lost their content and were never asked about, and old lists of samples."""
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
    """Whether the learner needs a sample no more when it goes on from its checkpoint."""
    return or_(samples.c.turn.is_(None), samples.c.turn <= saved_turn)


def _spare(saved_turn: int, audit_window: int) -> Subquery:
    """Contents that may go, with how many and how large the older ones of them are."""
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
    """Whether a question belongs to the audit slice and people said what they think."""
    return and_(
        questions.c.purpose == "audit",
        questions.c.settled.is_not(None),
        questions.c.state.in_(("answered", "none")),
    )
