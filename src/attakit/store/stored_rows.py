"""Rows that stay while the model changes: the base of anchors and waiting samples."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attakit.queries import SampleId
from attakit.records import LabelledRows, Prediction, Rows

REFRESH_BATCH = 100


class StoredRows:
    """Holds rows, or nothing yet: before the first one, their shapes are unknown."""

    def __init__(self) -> None:
        self._rows: LabelledRows | None = None

    def __len__(self) -> int:
        return 0 if self._rows is None else len(self._rows)

    @property
    def rows(self) -> LabelledRows:
        """The stored rows. Only valid if there are any."""
        assert self._rows is not None, "nothing is stored yet"
        return self._rows

    def reweight(self, weights: Mapping[SampleId, float]) -> None:
        """Set new weights for some samples; others keep theirs."""
        if self._rows is not None:
            self._rows = self._rows.reweighted(weights)

    def refresh(self, predict: Callable[[Tensor], Prediction]) -> None:
        """Recompute features and logits, which become outdated when the model trains.

        `predict` gets the start of a pass: inputs, or activations if those are stored.
        """
        if self._rows is None or len(self._rows) == 0:
            return
        count = len(self._rows)
        entry = self._rows.entry
        if count % REFRESH_BATCH == 1:
            # Batch norm without stored statistics cannot normalise a single sample.
            entry = torch.cat([entry, entry[-1:]])
        parts = [predict(part) for part in torch.split(entry, REFRESH_BATCH)]
        self._rows = replace(
            self._rows,
            features=torch.cat([part.features for part in parts])[:count],
            logits=torch.cat([part.logits for part in parts])[:count],
        )

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove samples."""
        if self._rows is not None:
            gone = set(samples)
            names = self._rows.samples
            self._keep([place for place, name in enumerate(names) if name not in gone])

    def _keep(self, places: list[int]) -> None:
        self._rows = None if self._rows is None else self._rows.take(places)


def covered_rows(stores: Sequence[StoredRows], like: Rows) -> Rows:
    """Return what a selector need not ask about: all stored rows, in shapes like the given."""
    covered = Rows((), like.features[:0], like.logits[:0], like.weights[:0])
    for store in stores:
        covered = covered.join(store.rows.unlabelled()) if len(store) else covered
    return covered
