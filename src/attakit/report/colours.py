"""A fixed colour for each method in all reports and plots."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

# Methods that are often shown together have fixed places; others share the rest.
_PLACES = {
    "sourceonly": 7,
    "batchnorm": 1,
    "bn": 1,
    "tent": 3,
    "anchorhead": 2,
    "simatta": 0,
    "randomlabels": 4,
    "eata": 5,
    "cotta": 6,
}
_COUNT = 8  # colours in the report's style sheet; plots start with the same ones


def colour_places(labels: Iterable[str]) -> dict[str, int]:
    """Assign each label a place among the colours; the next free one if two would be equal.

    With more than eight labels, places repeat the colours in rounds of eight.

    >>> colour_places(["simatta", "batch norm"])
    {'simatta': 0, 'batch norm': 1}
    >>> colour_places(["batch norm", "my method", "simatta"])["batch norm"]
    1
    """
    names = list(dict.fromkeys(labels))
    # Labels with a fixed place choose first, so that no other takes it.
    order = sorted(names, key=lambda name: _plain(name) not in _PLACES)
    taken: dict[str, int] = {}
    for name in order:
        used = set(taken.values())
        turn = len(used) // _COUNT
        wanted = _PLACES.get(_plain(name), zlib.crc32(name.encode())) % _COUNT
        places = (turn * _COUNT + (wanted + step) % _COUNT for step in range(_COUNT))
        taken[name] = next(place for place in places if place not in used)
    return {name: taken[name] for name in names}


def _plain(label: str) -> str:
    return "".join(sign for sign in label.partition("(")[0].lower() if sign.isalnum())
