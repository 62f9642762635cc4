"""Turn what a function returns into an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from attakit.errors import LabelError
from attakit.label.classes import class_index
from attakit.queries import Answer, Query

Class = int | str  # an index, or a name if the class names are known
Said = Class | Set[Class] | Mapping[Class, float] | Sequence[float] | None


def answer_from(
    who: str, query: Query, said: object, annotator: str, classes: Sequence[str] | None = None
) -> Answer:
    """Read what a function returned for a question.

    A class is a label, or yes or no if that was asked. A set of classes means "one of these". A
    dictionary or a list of numbers says how likely each class is. True and False answer a yes/no
    question. None skips it.

    >>> query = Query("a.png", 0)
    >>> answer_from("Callback", query, {"cat", "dog"}, "me", ["cat", "dog", "horse"]).among
    (0, 1)
    >>> answer_from("Callback", query, {"dog": 3, "cat": 1}, "me", ["cat", "dog", "horse"]).chances
    (1.0, 3.0, 0.0)
    """
    if said is None:
        return Answer.skipped(query, annotator)
    if isinstance(said, bool) and query.kind == "yes_no":
        return Answer.yes(query, annotator) if said else Answer.no(query, annotator)
    if isinstance(said, Mapping):
        return Answer(query, None, annotator, chances=_chances(who, query, said, classes))
    if isinstance(said, Set):
        return Answer(query, None, annotator, among=_among(who, query, said, classes))
    if isinstance(said, (list, tuple)):
        return Answer(query, None, annotator, chances=tuple(said))
    label = class_index(who, query.sample, said, classes)
    assert label is not None  # anything but None gives an index or an error
    return Answer.knowing(query, label, annotator)


def confirmation_from(who: str, query: Query, said: object, annotator: str) -> Answer:
    """Read what a function returned for a yes/no question."""
    if said is not None and not isinstance(said, bool):
        raise LabelError(
            f"{who}: confirm must return True, False or None for sample {query.sample!r}, got "
            f"{said!r}."
        )
    return answer_from(who, query, said, annotator)


def _among(
    who: str, query: Query, said: Iterable[object], classes: Sequence[str] | None
) -> tuple[int, ...]:
    found = {class_index(who, query.sample, each, classes) for each in said} - {None}
    if not found:
        raise LabelError(
            f"{who}: the set of classes for sample {query.sample!r} is empty. Return None to skip."
        )
    return tuple(sorted(index for index in found if index is not None))


def _chances(
    who: str, query: Query, said: Mapping[object, float], classes: Sequence[str] | None
) -> tuple[float, ...]:
    if classes is None:
        raise LabelError(
            f"{who}: sample {query.sample!r} got chances by class, but the class names are unknown "
            "here. Pass classes=[…], or return a list with one number per class."
        )
    chances = [0.0] * len(classes)
    for named, chance in said.items():
        index = class_index(who, query.sample, named, classes)
        if index is not None:
            chances[index] = float(chance)
    return tuple(chances)
