"""Window: the inputs of the last samples of a stream, as company for small batches."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from attakit.errors import check_count
from attakit.queries import SampleId
from attakit.records import Batch


class Window:
    """The last samples of a stream, and how many are new since the last update.

    Parameters
    ----------
    size
        Maximum number of samples. The oldest are removed first. 0 stores nothing.

    Examples
    --------
    >>> window = Window(size=3)
    >>> window.add(Batch(0, ("a", "b"), torch.tensor([[1.0], [2.0]])))
    False
    >>> window.with_company(torch.tensor([[3.0], [4.0]])).flatten()
    tensor([2., 3., 4.])
    >>> window.add(Batch(1, ("c", "d"), torch.tensor([[3.0], [4.0]])))
    True
    """

    def __init__(self, size: int = 0) -> None:
        check_count("Window", "size", size, at_least=0)
        self.size = size
        self.samples: tuple[SampleId, ...] = ()
        self.new = 0  # samples since the last update
        self._inputs: Tensor | None = None

    def __len__(self) -> int:
        return len(self.samples)

    def with_company(self, inputs: Tensor) -> Tensor:
        """Return the inputs, after as many of the last samples as fill up the window."""
        room = self.size - len(inputs)
        if room <= 0 or self._inputs is None or len(inputs) == 0:
            return inputs
        return torch.cat([self._inputs[-room:].to(inputs), inputs])

    def add(self, batch: Batch) -> bool:
        """Store a batch; returns True if an update is due.

        It is due when the whole window is new, so that every sample takes part in one update. A
        batch that fills the window alone is always due.
        """
        if self.size == 0:
            return True
        self._inputs = self.with_company(batch.inputs)[-self.size :].detach().clone()
        self.samples = (*self.samples, *batch.samples)[-self.size :]
        self.new += len(batch)
        is_due = self.new >= self.size
        self.new = 0 if is_due else self.new
        return is_due

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove some samples."""
        gone = set(samples)
        kept = [place for place, name in enumerate(self.samples) if name not in gone]
        if self._inputs is not None and len(kept) < len(self.samples):
            self._inputs = self._inputs[kept] if kept else None
            self.samples = tuple(self.samples[place] for place in kept)

    def state_dict(self) -> dict[str, Any]:
        return {"samples": list(self.samples), "inputs": self._inputs, "new": self.new}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.samples = tuple(SampleId(sample) for sample in state["samples"])[-self.size :]
        inputs = state["inputs"]
        self._inputs = None if inputs is None else inputs[-self.size :]
        self.new = state["new"]
        if self.size == 0:
            self.samples, self._inputs, self.new = (), None, 0
