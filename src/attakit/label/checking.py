"""Check answers: existing classes, one kind of content, sensible numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from attakit.errors import LabelError
from attakit.label.classes import class_index
from attakit.queries import Answer, Query


def checked_answer(who: str, answer: Answer) -> Answer:
    """Return an answer in plain numbers, or raise `LabelError` if it makes no sense.

    >>> from attakit.queries import Query
    >>> checked_answer("Ledger", Answer(Query("a.png", 0), None, "Ada", chances=(0.0, 0.0)))
    Traceback (most recent call last):
        ...
    attakit.errors.LabelError: Ledger: the chances of sample 'a.png' are (0.0, 0.0). Each must be 0
    or more, and one of them above 0.
    """
    label = class_index(who, answer.query.sample, answer.label)
    answer = replace(answer, cost=_checked_cost(who, answer))
    if answer.is_plain:
        return replace(answer, label=label)
    _check_content(who, answer)
    return replace(
        answer,
        label=label,
        excluded=_indices(who, answer.query, answer.excluded),
        among=_indices(who, answer.query, answer.among),
        chances=_checked_chances(who, answer),
        weight=_checked_weight(who, answer),
    )


def check_class_count(answers: Iterable[Answer], count: int) -> None:
    """Raise `LabelError` if an answer names a class that a model does not have."""
    for given in answers:
        named = [*given.excluded, *given.among, *([] if given.label is None else [given.label])]
        wrong = [kind for kind in named if kind >= count]
        if wrong:
            raise LabelError(
                f"{given.annotator} says that sample {given.query.sample!r} is "
                f"{'not ' if given.excluded else ''}of class {wrong[0]}, but the model has {count} "
                f"classes, 0 to {count - 1}. Answer None where none of them fits."
            )
        if given.chances is not None and len(given.chances) != count:
            raise LabelError(
                f"{given.annotator} gives {len(given.chances)} chances for sample "
                f"{given.query.sample!r}, but the model has {count} classes. Give one for each."
            )


def _check_content(who: str, answer: Answer) -> None:
    said = {
        "label": answer.label is not None,
        "excluded": bool(answer.excluded),
        "among": bool(answer.among),
        "chances": answer.chances is not None,
    }
    named = [name for name, is_there in said.items() if is_there]
    if len(named) > 1:
        raise LabelError(
            f"{who}: {answer.annotator} answers sample {answer.query.sample!r} with "
            f"{' and '.join(named)}. Give one of them."
        )


def _indices(who: str, query: Query, values: Sequence[object]) -> tuple[int, ...]:
    found = (class_index(who, query.sample, value) for value in values)
    return tuple(dict.fromkeys(index for index in found if index is not None))


def _checked_chances(who: str, answer: Answer) -> tuple[float, ...] | None:
    if answer.chances is None:
        return None
    chances = tuple(float(chance) for chance in answer.chances)
    if not all(chance >= 0 and math.isfinite(chance) for chance in chances) or not any(chances):
        raise LabelError(
            f"{who}: the chances of sample {answer.query.sample!r} are {chances}. Each must be 0 "
            f"or more, and one of them above 0."
        )
    return chances


def _checked_weight(who: str, answer: Answer) -> float:
    weight = float(answer.weight)
    if not 0 <= weight < math.inf:
        raise LabelError(
            f"{who}: the answer about sample {answer.query.sample!r} has the weight {weight}. It "
            f"must be 0 or more; 1 is a normal answer."
        )
    return weight


def _checked_cost(who: str, answer: Answer) -> float | None:
    cost = None if answer.cost is None else float(answer.cost)
    if cost is not None and not 0 <= cost < math.inf:
        raise LabelError(
            f"{who}: the answer about sample {answer.query.sample!r} costs {cost}. It must be 0 "
            f"or more, or None for the price of the question."
        )
    return cost
