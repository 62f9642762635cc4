"""Turn what people say into a class index."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from attakit.errors import LabelError, SettingError
from attakit.queries import SampleId


def check_classes(who: str, classes: Sequence[str]) -> tuple[str, ...]:
    """Return class names as a tuple, or raise `SettingError` if they are not usable."""
    if isinstance(classes, str):
        raise SettingError(f"{who}: classes must be a list of names, got the text {classes!r}.")
    names = tuple(classes)
    if not names:
        raise SettingError(f"{who}: classes must have at least one name, got none.")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise SettingError(f"{who}: every class needs a name that is a text, got {name!r}.")
        if names.count(name) > 1:
            raise SettingError(f"{who}: the class {name!r} is listed twice. List it once.")
    return names


def class_index(
    who: str, sample: SampleId, value: object, classes: Sequence[str] | None = None
) -> int | None:
    """Turn a class index or a class name into a plain index; None stays None (skipped).

    >>> class_index("Callback", SampleId("a.png"), "dog", ["cat", "dog"])
    1
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _index_of_name(who, sample, value, classes)
    index = _whole_number(who, sample, value)
    if index < 0 or (classes is not None and index >= len(classes)):
        allowed = "0 or more" if classes is None else f"from 0 to {len(classes) - 1}"
        raise LabelError(
            f"{who}: the label of sample {sample!r} is {index}, but a class index is {allowed}. "
            f"Use None for a sample without a label."
        )
    return index


def _index_of_name(who: str, sample: SampleId, name: str, classes: Sequence[str] | None) -> int:
    if classes is None:
        raise LabelError(
            f"{who}: the label of sample {sample!r} is the text {name!r}, but only class indices "
            f"are known here. Give a class index, or use Callback with classes=[…]."
        )
    if name not in classes:
        raise LabelError(
            f"{who}: the label of sample {sample!r} is {name!r}, which is not a class. "
            f"Classes: {', '.join(classes)}."
        )
    return list(classes).index(name)


def _whole_number(who: str, sample: SampleId, value: object) -> int:
    # Labels often come from arrays. Their integers are not ints but can be converted.
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise LabelError(
        f"{who}: the label of sample {sample!r} is {value!r} ({type(value).__name__}); "
        f"it must be a class index (a whole number), a class name, or None to skip."
    )
