"""JSON lines: one object per question, or per answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from attakit.service.exchange.lines import ExportedQuestion, Line, LineProblem, shortened
from attakit.service.storage.rows import Question

LONGEST_LINE = 1_000_000  # characters


def lines_of(asked: Iterable[ExportedQuestion], classes: Sequence[str]) -> Iterator[str]:
    """Yield the text of a file with one object per question, in pieces."""
    for one in asked:
        yield json.dumps(_to_object(one, classes), ensure_ascii=False) + "\n"


def read_lines(stream: Iterable[str]) -> Iterator[Line | LineProblem]:
    """Read one object per line; one with `answers`, as exported, may hold several."""
    for number, text in enumerate(stream, start=1):
        stripped = text.strip("\ufeff \t\r\n")
        if stripped:
            yield from _to_lines(number, stripped)


def _to_lines(number: int, text: str) -> Iterator[Line | LineProblem]:
    if len(text) > LONGEST_LINE:
        yield LineProblem(number, f"it has more than {LONGEST_LINE:,} characters")
        return
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield LineProblem(number, f"it is not JSON ({error})")
        return
    if not isinstance(found, dict) or "question" not in found:
        yield LineProblem(number, f"it is not an object with a question, but {shortened(found)}")
        return
    given = found.get("answers")
    if found.get("answer") is None and found.get("kind") is None and isinstance(given, list):
        for one in given:
            yield _to_line(number, found, one)
        if given:
            return
    yield _to_line(number, found, found)


def _to_line(number: int, question: dict[str, Any], said: Any) -> Line | LineProblem:
    if not isinstance(said, dict):
        return LineProblem(number, f"an answer must be an object, got {shortened(said)}")
    parts = {name: said.get(name) for name in ("answer", "kind", "annotator")}
    return Line(number, question["question"], **parts)


def _to_object(asked: ExportedQuestion, classes: Sequence[str]) -> dict[str, Any]:
    question = asked.question
    written = {
        "question": question.question,
        "sample": question.sample,
        "at": question.at,
        "version": question.version,
        "entropy": question.score,
        "guesses": [
            {"label": label, "class": classes[label], "probability": probability}
            for label, probability in question.guesses
        ],
        "state": question.state,
        **_proposal(question, classes),
        **_about(asked),
        "answer": None if question.label is None else classes[question.label],
        "answers": [
            {
                "annotator": given.annotator,
                "kind": given.kind,
                "answer": None if given.label is None else classes[given.label],
                "at": given.at,
                **({"comment": given.comment} if given.comment else {}),
                **({"flagged": True} if given.flagged else {}),
            }
            for given in asked.answers
        ],
    }
    return written if asked.image is None else {**written, "image": asked.image}


def _about(asked: ExportedQuestion) -> dict[str, Any]:
    """Return the sender's description of the sample, and its numbers, if there are any."""
    numbers = json.loads(asked.numbers) if asked.numbers else None
    said = {"id": asked.caller_id, "text": asked.text, "notes": asked.notes, "array": numbers}
    return {name: value for name, value in said.items() if value}


def _proposal(question: Question, classes: Sequence[str]) -> dict[str, Any]:
    return {} if question.proposed is None else {"proposed": classes[question.proposed]}
