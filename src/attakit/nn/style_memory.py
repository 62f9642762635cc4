"""Choose the samples that a bounded memory of a stream keeps: the latest, or earlier ones too."""

from __future__ import annotations

from attakit.randomness import generator

_LATEST = 3  # one in this many places is for the latest samples, the others for all before


def latest_places(known: int, new: int, window: int) -> range:
    """Return the places of the latest samples among the stored and the new ones.

    >>> latest_places(known=3, new=2, window=4)
    range(1, 5)
    """
    return range(max(0, known + new - window), known + new)


def lasting_places(known: int, new: int, window: int, seen: int) -> list[int]:
    """Return the places of the latest samples, after a uniform draw from all before.

    Parameters
    ----------
    known
        Number of stored samples, in the order of this function.
    new
        Number of new samples after them.
    window
        Capacity of the memory.
    seen
        Number of samples of the stream before the new ones. The draw depends only on it.

    Examples
    --------
    >>> places = lasting_places(known=6, new=4, window=6, seen=6)
    >>> len(places), places[-2:]
    (6, [8, 9])
    """
    latest = window // _LATEST
    drawn = window - latest
    leaving = known + new - latest
    places = list(range(min(drawn, max(0, leaving))))
    random = generator(0, "styles", seen)
    for place in range(len(places), leaving):
        slot = int(random.integers(seen + new - latest - leaving + place + 1))
        if slot < drawn:
            places[slot] = place
    return [*places, *range(max(0, leaving), known + new)]
