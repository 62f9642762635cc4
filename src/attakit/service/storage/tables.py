"""The tables of the database. Rows of the log (answers, promotions, gates, events) never change."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
)

SCHEMA = 2

metadata = MetaData()

# SQLite counts up by itself only for a plain INTEGER.
_Number = BigInteger().with_variant(Integer, "sqlite")

facts = Table(  # single values: the schema, whether learning is paused, the turn last saved
    "facts",
    metadata,
    Column("name", String, primary_key=True),
    Column("value", JSON, nullable=False),
)

samples = Table(
    "samples",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("sample", String, nullable=False, unique=True),
    Column("content", LargeBinary),
    Column("size", Integer, nullable=False),  # of the content, in bytes; 0 once it is removed
    Column("version", Integer, nullable=False),
    Column("guess", Integer, nullable=False),
    Column("confidence", Float, nullable=False),
    Column("entropy", Float, nullable=False),
    Column("at", Float, nullable=False, index=True),
    Column("turn", Integer, index=True),  # of the learner that took it; null before
    Column("forgotten", Float),
    Column("forgotten_turn", Integer),  # of the learner that dropped it from its memory
    sqlite_autoincrement=True,  # the number of a row that was removed is not given again
)

questions = Table(
    "questions",
    metadata,
    Column("question", _Number, primary_key=True, autoincrement=True),
    Column("sample", String, ForeignKey("samples.sample"), nullable=False, index=True),
    Column("turn", Integer, nullable=False),
    Column("purpose", String, nullable=False),
    Column("version", Integer, nullable=False),
    Column("score", Float, nullable=False),
    Column("guesses", JSON, nullable=False),
    Column("at", Float, nullable=False),
    Column("state", String, nullable=False),
    Column("label", Integer),
    Column("wanted", Integer, nullable=False),  # people still to be asked
    Column("decided", Float),  # when the answer came that will count unless it is withdrawn
    Column("settled", Float),
    Column("taken", Integer),  # turn of the learner that took the outcome
    UniqueConstraint("sample", "turn", "purpose"),  # a turn may be taken twice
    Index("questions_by_state", "state", "question"),
)

leases = Table(
    "leases",
    metadata,
    Column("question", ForeignKey("questions.question"), primary_key=True),
    Column("annotator", String, primary_key=True),
    Column("until", Float, nullable=False),
)

answers = Table(
    "answers",
    metadata,
    Column("answer", _Number, primary_key=True, autoincrement=True),
    Column("question", ForeignKey("questions.question"), nullable=False, index=True),
    Column(
        "key", String, nullable=False, unique=True
    ),  # chosen by the client: posting twice is harmless
    Column("annotator", String, nullable=False),
    Column("kind", String, nullable=False),  # "label", "skip", "none" or "undo"
    Column("label", Integer),
    Column("outcome", String, nullable=False),  # "accepted", "repeated", "late" or "conflict"
    Column("withdraws", ForeignKey("answers.answer")),  # for "undo"
    Column("at", Float, nullable=False),
)

turns = Table(
    "turns",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("samples", JSON, nullable=False),
    Column("allowance", Integer, nullable=False),
    Column("audit", JSON, nullable=False),
    Column("settled", JSON, nullable=False),
    Column("forgotten", JSON, nullable=False),
    Column("at", Float, nullable=False),
    Column("numbers", JSON),  # what came of it, for the dashboard; null before it is done
)

versions = Table(
    "versions",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("turn", Integer, nullable=False, unique=True),
    Column("file", String, nullable=False),
    Column("weights", String, nullable=False),
    Column("labels", Integer, nullable=False),
    Column("at", Float, nullable=False),
)

gates = Table(
    "gates",
    metadata,
    Column("version", ForeignKey("versions.number"), primary_key=True),
    Column("passed", Boolean, nullable=False),
    Column("reason", String, nullable=False),
    Column("numbers", JSON, nullable=False),
    Column("at", Float, nullable=False),
)

promotions = Table(
    "promotions",
    metadata,
    Column("promotion", _Number, primary_key=True, autoincrement=True),
    Column("key", String, unique=True),  # of a promotion that may be asked for twice
    Column("version", ForeignKey("versions.number"), nullable=False),
    Column("reason", String, nullable=False),
    Column("who", String, nullable=False),
    Column("at", Float, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("number", _Number, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("kind", String, nullable=False, index=True),
    Column("who", String, nullable=False),
    Column("details", JSON, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", String, primary_key=True),
    Column("role", String, nullable=False),
    Column("hash", String, nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
)
