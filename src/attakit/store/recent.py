"""A bounded memory of the last samples, as features and logits only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attakit.errors import check_count
from attakit.queries import SampleId


class Recent:
    """The last samples of a stream, without labels and without inputs.

    Parameters
    ----------
    capacity
        Maximum number of samples. The oldest are removed first.

    Examples
    --------
    >>> recent = Recent(capacity=2)
    >>> recent.add(("a", "b", "c"), torch.eye(3), torch.zeros(3, 2))
    >>> recent.samples
    ('b', 'c')
    """

    def __init__(self, *, capacity: int) -> None:
        check_count("Recent", "capacity", capacity, at_least=0)
        self.capacity = capacity
        self.samples: tuple[SampleId, ...] = ()
        self._features: Tensor | None = None
        self._logits: Tensor | None = None

    def __len__(self) -> int:
        return len(self.samples)

    def add(self, samples: Sequence[SampleId], features: Tensor, logits: Tensor) -> None:
        """Store samples. The oldest ones make room."""
        if self.capacity == 0:
            return
        # Half precision is enough for similarities, and halves the saved size.
        features, logits = features.half(), logits.float()
        before, kept = self.all(features, logits), slice(-self.capacity, None)
        self.samples = (*self.samples, *samples)[kept]
        self._features = torch.cat([before[0], features])[kept]
        self._logits = torch.cat([before[1], logits])[kept]

    def all(self, features: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return features and logits of all samples, in the types of the given tensors."""
        if self._features is None or self._logits is None:
            return features[:0], logits[:0]
        return self._features.to(features), self._logits.to(logits)

    def clear(self) -> None:
        """Remove everything."""
        self.samples, self._features, self._logits = (), None, None

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove some samples."""
        kept = [place for place, name in enumerate(self.samples) if name not in samples]
        if self._features is not None and self._logits is not None:
            self._features, self._logits = self._features[kept], self._logits[kept]
        self.samples = tuple(self.samples[place] for place in kept)

    def state_dict(self) -> dict[str, Any]:
        return {
            "samples": list(self.samples),
            "features": self._features,
            "logits": self._logits,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.samples = tuple(SampleId(sample) for sample in state["samples"])
        self._features, self._logits = state["features"], state["logits"]
