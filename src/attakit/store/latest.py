"""The latest batch, for methods whose update waits for its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attakit.records import LabelledRows
from attakit.store.stored_rows import StoredRows
from attakit.store.waiting import Waiting


class Latest(StoredRows):
    """Stores the latest batch, and whether a method still has to adapt to it.

    A loss with a labelled and an unlabelled part needs both at the same time, so the batch is held
    until its answers arrive. It stays afterwards: late labelled samples pass through the model
    together with it.

    Examples
    --------
    >>> rows = torch.zeros(1, 2)
    >>> latest = Latest()
    >>> latest.hold(LabelledRows(("tabby",), rows, torch.tensor([-1]), rows, rows, torch.ones(1)))
    >>> latest.due
    True
    """

    def __init__(self) -> None:
        super().__init__()
        self._is_new = False

    @property
    def due(self) -> bool:
        """True if there is a batch that the method has not adapted to."""
        return self._is_new and len(self) > 0

    def hold(self, rows: LabelledRows) -> None:
        """Replace the batch with a new one, not adapted to yet."""
        self._rows = _copied(rows)
        self._is_new = True

    def adapted(self) -> None:
        """Record that the method has adapted to the batch."""
        self._is_new = False

    def waits_for(self, asked: Waiting) -> bool:
        """True if a question about a sample of the batch is still open."""
        return len(self) > 0 and not asked.open_samples.isdisjoint(self.rows.samples)

    def state_dict(self) -> dict[str, Any]:
        rows = None if self._rows is None else self._rows.state_dict()
        return {"rows": rows, "is_new": self._is_new}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        rows = LabelledRows.from_state(state["rows"])
        self._rows = None if rows is None else _copied(rows)
        self._is_new = state["is_new"]


def _copied(rows: LabelledRows) -> LabelledRows:
    # Some kernels round differently if a tensor is not aligned in memory, like a part of a stream
    # or a file. A resumed run must round like the original one.
    return rows.take(range(len(rows)))


def in_company(rows: LabelledRows, latest: StoredRows) -> Tensor:
    """Return the inputs of some rows, followed by the other samples of the latest batch.

    With batch statistics, one or two labelled samples would otherwise be normalised alone.

    >>> def batch(*names):
    ...     count = len(names)
    ...     inputs = torch.arange(2.0 * count).reshape(count, 2)
    ...     labels, weights = torch.zeros(count, dtype=torch.long), torch.ones(count)
    ...     return LabelledRows(names, inputs, labels, inputs, inputs, weights)
    >>> latest = Latest()
    >>> latest.hold(batch("a", "b", "c"))
    >>> in_company(latest.rows.take([1]), latest).shape
    torch.Size([3, 2])
    """
    if len(latest) == 0:
        return rows.inputs
    drawn, others = set(rows.samples), latest.rows
    places = [place for place, sample in enumerate(others.samples) if sample not in drawn]
    return torch.cat([rows.inputs, others.inputs[places]])
