"""Anchors: the samples a model trains on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from attakit.errors import check_range
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.records import LabelledRows, Prediction


class Anchors:
    """Samples with a label (from people, or pseudo) and a weight.

    A sample that is added again replaces its earlier self. With a capacity, what is kept is a
    uniform draw from all that was ever added (reservoir sampling, Vitter's algorithm R), so memory
    does not grow with the stream.

    Parameters
    ----------
    capacity
        How many samples to keep; None keeps all.
    seed
        Of the draw.
    """

    def __init__(self, *, capacity: int | None = None, seed: int = 0) -> None:
        if capacity is not None:
            check_range("Anchors", "capacity", capacity, at_least=1)
        self.capacity = capacity
        self.seed = seed
        self.seen = 0
        self._rows: LabelledRows | None = None

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    def __contains__(self, sample: SampleId) -> bool:
        return self._rows is not None and sample in self._rows.samples

    @property
    def rows(self) -> LabelledRows:
        """What is stored. Only meaningful when there is something."""
        assert self._rows is not None, "no anchors yet"
        return self._rows

    def add(self, rows: LabelledRows) -> None:
        """Store labelled samples."""
        if len(rows) == 0:
            return
        self._forget(set(rows.samples))
        joined = rows if self._rows is None else self._rows.join(rows)
        if self.capacity is None:
            self.seen += len(rows)
            self._rows = joined
            return
        kept = list(range(len(joined) - len(rows)))
        for position in range(len(kept), len(joined)):
            self.seen += 1
            if len(kept) < self.capacity:
                kept.append(position)
                continue
            place = int(generator(self.seed, "reservoir", self.seen).integers(self.seen))
            if place < self.capacity:
                kept[place] = position
        self._rows = joined.take(kept)

    def keep(self, mask: Tensor) -> None:
        """Drop the rows where the mask is false."""
        if self._rows is not None and not bool(mask.all()):
            self._rows = self._rows.take(mask.nonzero().flatten().tolist())

    def reweight(self, weights: Mapping[SampleId, float]) -> None:
        """Give new weights to the samples named; others keep theirs."""
        if self._rows is not None:
            self._rows = self._rows.reweighted(weights)

    def refresh(self, predict: Callable[[Tensor], Prediction]) -> None:
        """Compute features and logits anew: they go stale when the model trains."""
        if self._rows is not None and len(self._rows):
            self._rows = refreshed(self._rows, predict)

    def state_dict(self) -> dict[str, Any]:
        rows = None if self._rows is None else self._rows.state_dict()
        return {"seen": self.seen, "rows": rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seen = state["seen"]
        self._rows = LabelledRows.from_state(state["rows"])

    def _forget(self, samples: set[SampleId]) -> None:
        if self._rows is not None:
            stays = [sample not in samples for sample in self._rows.samples]
            self.keep(torch.tensor(stays, device=self._rows.labels.device))


REFRESH_BATCH = 100


def refreshed(rows: LabelledRows, predict: Callable[[Tensor], Prediction]) -> LabelledRows:
    """The same rows as the model of today sees them."""
    parts = [predict(inputs) for inputs in torch.split(rows.inputs, REFRESH_BATCH)]
    return LabelledRows(
        rows.samples,
        rows.inputs,
        rows.labels,
        torch.cat([part.features for part in parts]),
        torch.cat([part.logits for part in parts]),
        rows.weights,
    )
