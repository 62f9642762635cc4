"""Questions and answers as plain lists, for saved states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attakit.errors import StateError
from attakit.queries import Answer, Query

Packed = list[Any]


def pack_queries(queries: Iterable[Query]) -> list[Packed]:
    """Turn questions into lists of strings and numbers.

    >>> pack_queries([Query("cat.png", step=3)])
    [['cat.png', 3]]
    """
    return [query.packed() for query in queries]


def unpack_queries(packed: Iterable[Packed]) -> list[Query]:
    """Turn the lists of `pack_queries` back into questions."""
    return [Query.unpacked(each) for each in packed]


def pack_answers(answers: Iterable[Answer]) -> list[Packed]:
    """Turn answers into lists of strings and numbers.

    >>> pack_answers([Answer(Query("cat.png", step=3), 1, "Ada")])
    [['cat.png', 3, 1, 'Ada']]
    """
    return [[*answer.query.packed(), answer.label, answer.annotator] for answer in answers]


def unpack_answers(packed: Iterable[Packed]) -> list[Answer]:
    """Turn the lists of `pack_answers` back into answers."""
    return [Answer(Query.unpacked(query), label, annotator) for *query, label, annotator in packed]


def check_state(who: str, state: Mapping[str, Any], entries: Sequence[str]) -> None:
    """Raise `StateError` unless a saved state has exactly the entries expected."""
    if set(state) != set(entries):
        raise StateError(
            f"{who}: the saved state has the entries {', '.join(sorted(state)) or '(none)'}, "
            f"expected {', '.join(sorted(entries))}. Resume with the same parts, in the same "
            f"order, that the run was started with."
        )
