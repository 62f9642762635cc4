"""Rows of the tables as records, and numbers as JSON can keep them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row

from attakit.service.storage.records import (
    Event,
    Gate,
    GivenAnswer,
    Promotion,
    Question,
    Served,
    Turn,
    Version,
)


def to_served(row: Row[Any]) -> Served:
    return Served(
        sample=row.sample,
        content=row.content,
        version=row.version,
        guess=row.guess,
        confidence=row.confidence,
        entropy=row.entropy,
        at=row.at,
        number=row.number,
    )


def to_question(row: Row[Any]) -> Question:
    return Question(
        question=row.question,
        sample=row.sample,
        turn=row.turn,
        purpose=row.purpose,
        version=row.version,
        score=row.score,
        guesses=tuple((label, probability) for label, probability in row.guesses),
        at=row.at,
        state=row.state,
        label=row.label,
        settled=row.settled,
    )


def to_answer(row: Row[Any]) -> GivenAnswer:
    return GivenAnswer(
        answer=row.answer,
        question=row.question,
        annotator=row.annotator,
        kind=row.kind,
        label=row.label,
        at=row.at,
        withdrawn=row.withdrawn,
        outcome=row.outcome,
    )


def to_turn(row: Row[Any]) -> Turn:
    return Turn(
        number=row.number,
        samples=tuple(row.samples),
        allowance=row.allowance,
        audit=tuple(row.audit),
        settled=tuple(row.settled),
        forgotten=tuple(row.forgotten),
        at=row.at,
    )


def to_version(row: Row[Any]) -> Version:
    gate = None
    if row.passed is not None:
        gate = Gate(row.passed, row.reason, unpack_numbers(row.numbers), row.gated)
    return Version(row.number, row.turn, row.file, row.weights, row.labels, row.at, gate)


def to_promotion(row: Row[Any]) -> Promotion:
    return Promotion(row.promotion, row.version, row.reason, row.who, row.at)


def to_event(row: Row[Any]) -> Event:
    return Event(row.number, row.at, row.kind, row.who, row.details)


def pack_numbers(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Numbers for JSON, which knows neither infinity nor what is not a number.

    >>> pack_numbers({"loss": float("nan"), "labels": 3})
    {'loss': None, 'labels': 3.0}
    """
    return {name: float(value) if math.isfinite(value) else None for name, value in numbers.items()}


def unpack_numbers(packed: Mapping[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else value for name, value in packed.items()}
