"""The tables of the database. Rows of the log (answers, promotions, gates, events) never change.

A change of a table needs a migration in `migrations/` that changes existing databases too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
)

metadata = MetaData()

# SQLite counts up automatically only for a plain INTEGER.
RowNumber = BigInteger().with_variant(Integer, "sqlite")
_LARGEST_NUMBER = 2**63 - 1


class NumbersColumn(TypeDecorator[Mapping[str, float]]):
    """Numbers by name. JSON has neither infinity nor NaN: both are stored as null, read as NaN."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Mapping[str, float] | None, dialect: Dialect) -> Any:  # noqa: ARG002
        if value is None:
            return None
        return {name: float(one) if math.isfinite(one) else None for name, one in value.items()}

    def process_result_value(self, value: Any, dialect: Dialect) -> Mapping[str, float] | None:  # noqa: ARG002
        if value is None:
            return None
        return {name: math.nan if one is None else one for name, one in value.items()}


class TuplesColumn(TypeDecorator[tuple[Any, ...]]):
    """Lists in JSON that are read as tuples, because records are frozen."""

    impl = JSON
    cache_ok = True

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[Any, ...] | None:  # noqa: ARG002
        return None if value is None else _as_tuple(value)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def counted(name: str) -> Column[int]:
    """Return a primary key that the database counts up."""
    return Column(name, RowNumber, primary_key=True, autoincrement=True)


def required(**kinds: Any) -> list[Column[Any]]:
    """Return columns that are never null, by name."""
    return [Column(name, kind, nullable=False) for name, kind in kinds.items()]


def optional(**kinds: Any) -> list[Column[Any]]:
    """Return columns that may be null, by name."""
    return [Column(name, kind) for name, kind in kinds.items()]


def is_text(value: str) -> bool:
    """True if both databases can store a text: no zero character, no unpaired surrogates.

    >>> is_text("cat"), is_text("c\\x00t"), is_text("\\ud800")
    (True, False, False)
    """
    if "\x00" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: int) -> bool:
    """True if a number can be one that the database assigned.

    >>> is_number(7), is_number(-1), is_number(10**30)
    (True, False, False)
    """
    return 0 <= value <= _LARGEST_NUMBER


# Alembic's table for the revision, under a name that no other program uses.
revisions = Table(
    "attakit_revision",
    metadata,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="attakit_revision_pkc"),
)

facts = Table(  # single values: whether learning is paused, the turn last saved
    "facts",
    metadata,
    Column("name", String, primary_key=True),
    *required(value=JSON),
)

samples = Table(
    "samples",
    metadata,
    counted("number"),
    Column("sample", String, nullable=False, unique=True),
    *optional(content=LargeBinary),
    *required(size=Integer),  # bytes of the content; 0 if removed
    *required(version=Integer, guess=Integer, confidence=Float, entropy=Float),
    Column("at", Float, nullable=False, index=True),
    Column("turn", Integer, index=True),  # that used it; null before, -1 for a known example
    *optional(forgotten=Float),
    *optional(forgotten_turn=Integer),  # the turn that removed it from the learner's memory
    *optional(caller_id=String, text=String, notes=JSON(none_as_null=True)),  # from the caller
    sqlite_autoincrement=True,  # the number of a removed row is never used again
)

questions = Table(
    "questions",
    metadata,
    counted("question"),
    Column("sample", String, ForeignKey("samples.sample"), nullable=False, index=True),
    *required(turn=Integer, purpose=String, version=Integer, score=Float),
    *required(guesses=TuplesColumn, at=Float, state=String),
    *optional(label=Integer),
    *required(wanted=Integer),  # people still to ask
    *optional(decided=Float),  # when the answer arrived that counts unless withdrawn
    *optional(settled=Float),
    *optional(taken=Integer),  # turn of the learner that used the outcome
    *optional(source_guess=Integer, source_entropy=Float),  # the source model's; null if old
    *optional(proposed=Integer),  # class of a yes/no question; -1 if forgotten
    *optional(refunded=Boolean),  # an old "none of these", which was not paid
    *optional(weight=Float),  # how far to trust the label; null is a normal answer
    *optional(chances=TuplesColumn(none_as_null=True)),  # by class, from several people
    UniqueConstraint("sample", "turn", "purpose", name="questions_once"),  # a turn may run twice
    Index("questions_by_state", "state", "question"),
)

leases = Table(
    "leases",
    metadata,
    Column("question", ForeignKey("questions.question"), primary_key=True),
    Column("annotator", String, primary_key=True),
    *required(until=Float),
)

answers = Table(
    "answers",
    metadata,
    counted("answer"),
    Column("question", ForeignKey("questions.question"), nullable=False, index=True),
    Column("key", String, nullable=False, unique=True),  # chosen by the client: see `NewAnswer`
    *required(annotator=String),
    *required(kind=String),  # "label", "no", "skip", "none" or "undo"; a "yes" is a label
    *optional(label=Integer),
    *required(outcome=String),  # "accepted", "repeated", "late" or "conflict"
    Column("withdraws", ForeignKey("answers.answer")),  # for "undo"
    *required(at=Float),
    *optional(comment=String, flagged=Boolean),
)

turns = Table(
    "turns",
    metadata,
    Column("number", Integer, primary_key=True),
    *required(
        samples=TuplesColumn,
        allowance=Integer,
        audit=TuplesColumn,
        settled=TuplesColumn,
        forgotten=TuplesColumn,
    ),
    *required(at=Float),
    *optional(numbers=NumbersColumn),  # results for the dashboard; null until finished
    *optional(checks=TuplesColumn(none_as_null=True)),  # null if old
)

versions = Table(
    "versions",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("turn", Integer, nullable=False, unique=True),
    *required(file=String, weights=String, labels=Integer, at=Float),
)

gates = Table(
    "gates",
    metadata,
    Column("version", ForeignKey("versions.number"), primary_key=True),
    *required(passed=Boolean, reason=String, numbers=NumbersColumn, at=Float),
)

promotions = Table(
    "promotions",
    metadata,
    counted("promotion"),
    Column("key", String, unique=True),  # key of a promotion that may be requested twice
    Column("version", ForeignKey("versions.number"), nullable=False),
    *required(reason=String, who=String, at=Float),
)

events = Table(
    "events",
    metadata,
    counted("number"),
    *required(at=Float),
    Column("kind", String, nullable=False, index=True),
    *required(who=String, details=JSON),
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", String, primary_key=True),
    *required(role=String),
    Column("hash", String, nullable=False, unique=True),
    *required(created=Float),
    *optional(revoked=Float),
)


def add_event(connection: Connection, at: float, kind: str, who: str, **details: Any) -> None:
    """Add a line to the log, in the transaction of the event.

    Never write labels here: they must be forgotten with their sample, but this log stays.
    """
    connection.execute(events.insert().values(at=at, kind=kind, who=who, details=details))


def put_fact(connection: Connection, name: str, value: Any) -> None:
    """Set a single value. It must be JSON."""
    same_name = facts.c.name == name
    changed = connection.execute(facts.update().where(same_name).values(value=value))
    if changed.rowcount == 0:
        connection.execute(facts.insert().values(name=name, value=value))
