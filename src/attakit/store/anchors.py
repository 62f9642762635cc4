"""Anchors: the samples a model trains on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from attakit.errors import check_count
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.records import LabelledRows
from attakit.store.stored_rows import StoredRows


class Anchors(StoredRows):
    """Samples with a label (from people, or pseudo) and a weight.

    A sample that is added again replaces its earlier version. With a capacity, the stored samples
    are a uniform draw from all that were ever added (reservoir sampling, Vitter's algorithm R). So
    memory does not grow with the stream.

    Parameters
    ----------
    capacity
        Maximum number of samples; None keeps all.
    seed
        Seed of the draw.

    Examples
    --------
    >>> import torch
    >>> def cat(name, label):
    ...     row = torch.zeros(1, 2)
    ...     return LabelledRows((name,), row, torch.tensor([label]), row, row, torch.ones(1))
    >>> anchors = Anchors(capacity=100)
    >>> anchors.add(cat("tabby", 1))
    >>> anchors.add(cat("tabby", 0))
    >>> len(anchors), anchors.rows.labels
    (1, tensor([0]))
    """

    def __init__(self, *, capacity: int | None = None, seed: int = 0) -> None:
        if capacity is not None:
            check_count("Anchors", "capacity", capacity, at_least=1)
        super().__init__()
        self.capacity = capacity
        self.seed = seed
        self.seen = 0

    def __contains__(self, sample: SampleId) -> bool:
        return self._rows is not None and sample in self._rows.samples

    def add(self, rows: LabelledRows) -> None:
        """Store labelled samples. If several have the same name, the last counts."""
        rows = _without_repeats(rows)
        if len(rows) == 0:
            return
        before = list(range(len(self)))
        kept = self._kept_after(rows)
        if self._rows is None:
            self._rows = rows.take(kept)
        elif kept[: len(before)] != before:
            self._rows = self._rows.join(rows).take(kept)
        elif kept != before:  # nothing was replaced, so the stored rows need no new order
            self._rows = self._rows.join(
                rows.take([at - len(before) for at in kept[len(before) :]])
            )

    def _kept_after(self, rows: LabelledRows) -> list[int]:
        """Return the positions to keep, among the stored rows followed by the given ones."""
        kept = list(range(len(self)))
        stored = {} if self._rows is None else _places(self._rows)
        fresh = []
        for position, sample in enumerate(rows.samples, start=len(self)):
            if sample in stored:
                kept[stored[sample]] = position
            else:
                fresh.append(position)
        for position in fresh:
            self._reservoir_sample(position, kept)
        return kept

    def _reservoir_sample(self, position: int, kept: list[int]) -> None:
        """Offer one more position to the reservoir: keep it, replace another, or drop it."""
        self.seen += 1
        if self.capacity is None or len(kept) < self.capacity:
            kept.append(position)
            return
        drawn = int(generator(self.seed, "reservoir", self.seen).integers(self.seen))
        if drawn < self.capacity:
            kept[drawn] = position

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove samples. The count of all added samples stays: later draws depend on it."""
        super().forget(samples)

    def hand_over(self) -> LabelledRows | None:
        """Return everything and become empty; None if there is nothing."""
        rows, self._rows = self._rows, None
        self.seen = 0
        return rows

    def state_dict(self) -> dict[str, Any]:
        rows = None if self._rows is None else self._rows.state_dict()
        return {"seen": self.seen, "rows": rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seen = state["seen"]
        self._rows = LabelledRows.from_state(state["rows"])


def _places(rows: LabelledRows) -> dict[SampleId, int]:
    return {sample: place for place, sample in enumerate(rows.samples)}


def _without_repeats(rows: LabelledRows) -> LabelledRows:
    last = _places(rows)
    return rows if len(last) == len(rows) else rows.take(sorted(last.values()))
