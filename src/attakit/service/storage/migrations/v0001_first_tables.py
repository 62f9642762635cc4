"""The tables from the time before Alembic, when a row of `facts` held their schema."""

from __future__ import annotations

from typing import Any

from alembic.operations import Operations
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    LargeBinary,
    String,
    UniqueConstraint,
)

revision = "0001"
down_revision = None

_Number = BigInteger().with_variant(Integer, "sqlite")


def _counted(name: str) -> Column[int]:
    return Column(name, _Number, primary_key=True, autoincrement=True)


def _refers(name: str, target: str, kind: Any = Integer, **options: Any) -> Column[Any]:
    return Column(name, kind, ForeignKey(target), **options)


def _required(**kinds: Any) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name, kind in kinds.items()]


def upgrade(op: Operations) -> None:
    """Create all tables, and record the schema where the first attakit versions look for it."""
    _make_samples(op)
    _make_questions(op)
    _make_versions(op)
    facts = op.create_table(
        "facts", Column("name", String, primary_key=True), *_required(value=JSON)
    )
    op.bulk_insert(facts, [{"name": "schema", "value": 1}])
    op.create_table(
        "events",
        _counted("number"),
        *_required(at=Float, kind=String, who=String, details=JSON),
    )
    op.create_index("ix_events_kind", "events", ["kind"])
    op.create_table(
        "tokens",
        Column("name", String, primary_key=True),
        *_required(role=String, hash=String, created=Float),
        Column("revoked", Float),
        UniqueConstraint("hash"),
    )


def _make_samples(op: Operations) -> None:
    op.create_table(
        "samples",
        _counted("number"),
        *_required(sample=String),
        Column("content", LargeBinary),
        *_required(size=Integer, version=Integer, guess=Integer),
        *_required(confidence=Float, entropy=Float, at=Float),
        Column("turn", Integer),
        Column("forgotten", Float),
        Column("forgotten_turn", Integer),
        UniqueConstraint("sample"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_samples_at", "samples", ["at"])
    op.create_index("ix_samples_turn", "samples", ["turn"])


def _make_questions(op: Operations) -> None:
    op.create_table(
        "questions",
        _counted("question"),
        _refers("sample", "samples.sample", String, nullable=False),
        *_required(turn=Integer, copy=Integer, purpose=String, version=Integer, score=Float),
        *_required(guesses=JSON, at=Float, state=String),
        Column("label", Integer),
        *_required(wanted=Integer),
        Column("decided", Float),
        Column("settled", Float),
        Column("taken", Integer),
        UniqueConstraint("sample", "turn", "copy", "purpose"),
    )
    op.create_index("ix_questions_sample", "questions", ["sample"])
    op.create_index("questions_by_state", "questions", ["state", "question"])
    op.create_table(
        "leases",
        _refers("question", "questions.question", _Number, primary_key=True),
        Column("annotator", String, primary_key=True),
        *_required(until=Float),
    )
    op.create_table(
        "answers",
        _counted("answer"),
        _refers("question", "questions.question", _Number, nullable=False),
        *_required(key=String, annotator=String, kind=String),
        Column("label", Integer),
        *_required(outcome=String),
        _refers("withdraws", "answers.answer", _Number),
        *_required(at=Float),
        UniqueConstraint("key"),
    )
    op.create_index("ix_answers_question", "answers", ["question"])


def _make_versions(op: Operations) -> None:
    op.create_table(
        "turns",
        Column("number", Integer, primary_key=True),
        *_required(samples=JSON, allowance=Integer, audit=JSON, settled=JSON, forgotten=JSON),
        *_required(at=Float),
        Column("numbers", JSON),
    )
    op.create_table(
        "versions",
        Column("number", Integer, primary_key=True),
        *_required(turn=Integer, file=String, weights=String, labels=Integer, at=Float),
        UniqueConstraint("turn"),
    )
    op.create_table(
        "gates",
        _refers("version", "versions.number", primary_key=True),
        *_required(passed=Boolean, reason=String, numbers=JSON, at=Float),
    )
    op.create_table(
        "promotions",
        _counted("promotion"),
        Column("key", String),
        _refers("version", "versions.number", nullable=False),
        *_required(reason=String, who=String, at=Float),
        UniqueConstraint("key"),
    )
