"""How much of a stream is still to come, so that a budget can be spread over it."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

from attakit.records import Batch
from attakit.stream.batches import Stream


class SamplesLeft:
    """Counts down the samples of a stream, as far as its length is known.

    If only the number of batches is known, future batches are assumed to be as large as this one.

    Parameters
    ----------
    stream
        The batches. A `Stream` knows its number of samples, a list its number of batches.
    samples
        Number of samples to come, if the stream does not know it.

    Examples
    --------
    >>> from attakit.testing import tiny_batch
    >>> left = SamplesLeft([1, 2, 3])
    >>> [left.at(tiny_batch(number, size=10)) for number in range(3)]
    [30, 20, 10]
    """

    def __init__(self, stream: Iterable[Any], samples: int | None = None) -> None:
        if samples is None and isinstance(stream, Stream):
            samples = stream.sample_count
        self._samples = samples
        self._batches = _length(stream)

    def at(self, batch: Batch) -> int | None:
        """Return the number of samples from this batch on; None if unknown."""
        found = self._samples
        if found is None and self._batches is not None:
            found = len(batch) * self._batches
        if self._samples is not None:
            self._samples -= len(batch)
        if self._batches is not None:
            self._batches -= 1
        return found


def _length(stream: Iterable[Any]) -> int | None:
    try:
        return len(stream) if isinstance(stream, Sized) else None
    except TypeError:  # a DataLoader without a length
        return None
