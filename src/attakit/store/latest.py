"""The latest batch, for methods whose update waits for the answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attakit.records import LabelledRows
from attakit.store.stored_rows import StoredRows
from attakit.store.waiting import Waiting


class Latest(StoredRows):
    """Keeps the latest batch, and whether a method has still to adapt to it.

    A loss that has a labelled and an unlabelled part needs both at the same time, so the batch is
    held until its answers are there. It stays afterwards: labelled samples that come late pass
    through the model in its company.

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
        """Whether there is a batch to which the method has still to adapt."""
        return self._is_new and len(self) > 0

    def hold(self, rows: LabelledRows) -> None:
        """Replace the batch by another one, to which nothing has adapted yet."""
        self._rows = _copied(rows)
        self._is_new = True

    def adapted(self) -> None:
        """Note that the method has adapted to the batch."""
        self._is_new = False

    def waits_for(self, asked: Waiting) -> bool:
        """Whether a question about a sample of the batch is still open."""
        return len(self) > 0 and not asked.open_samples.isdisjoint(self.rows.samples)

    def state_dict(self) -> dict[str, Any]:
        rows = None if self._rows is None else self._rows.state_dict()
        return {"rows": rows, "is_new": self._is_new}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        rows = LabelledRows.from_state(state["rows"])
        self._rows = None if rows is None else _copied(rows)
        self._is_new = state["is_new"]


def _copied(rows: LabelledRows) -> LabelledRows:
    # Some kernels round otherwise where a tensor does not begin at an even place in memory, as a
    # part of a stream or of a file may. A resumed run must round as the unbroken one did.
    return rows.take(range(len(rows)))


def in_company(rows: LabelledRows, latest: StoredRows) -> Tensor:
    """The inputs of some rows, followed by those of the other samples of the latest batch.

    Where a model normalises with batch statistics, one or two labelled samples would otherwise be
    normalised by themselves.

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
