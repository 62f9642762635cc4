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
    return [[*answer.query.packed(), pack_said(answer), answer.annotator] for answer in answers]


def unpack_answers(packed: Iterable[Packed]) -> list[Answer]:
    """Turn the lists of `pack_answers` back into answers."""
    return [
        unpack_said(Query.unpacked(query), said, annotator) for *query, said, annotator in packed
    ]


def pack_said(answer: Answer) -> int | dict[str, Any] | None:
    """Return an answer's label or None, or a dictionary if it says something else.

    >>> pack_said(Answer.no(Query("cat.png", step=3, proposed=2), "Ada"))
    {'excluded': [2]}
    """
    if answer.is_plain and answer.cost is None:
        return answer.label
    said: dict[str, Any] = {} if answer.cost is None else {"cost": answer.cost}
    if answer.label is not None:
        said["label"] = answer.label
    for name in ("excluded", "among", "chances"):
        if getattr(answer, name):
            said[name] = list(getattr(answer, name))
    return said if answer.weight == 1 else {**said, "weight": answer.weight}


def unpack_said(query: Query, said: int | Mapping[str, Any] | None, annotator: str) -> Answer:
    """Rebuild the answer from what `pack_said` returned."""
    if not isinstance(said, Mapping):
        return Answer(query, said, annotator)
    chances = said.get("chances")
    return Answer(
        query,
        said.get("label"),
        annotator,
        excluded=tuple(said.get("excluded", ())),
        among=tuple(said.get("among", ())),
        chances=None if chances is None else tuple(chances),
        weight=said.get("weight", 1.0),
        cost=said.get("cost"),
    )


def check_state(who: str, state: Mapping[str, Any], entries: Sequence[str]) -> None:
    """Raise `StateError` unless a saved state has exactly the entries expected."""
    if set(state) != set(entries):
        raise StateError(
            f"{who}: the saved state has the entries {', '.join(sorted(state)) or '(none)'}, "
            f"expected {', '.join(sorted(entries))}. Resume with the same parts in the same "
            f"order that the run was started with."
        )
