"""Entropy bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor


class EntropyBounds:
    def __init__(self, low: float | str, high: float | str) -> None:
        self.low = 1e-3 if low == "auto" else float(low)
        self.high = 1e-2 if high == "auto" else float(high)

    def observe(self, source_entropy: Tensor, entropy: Tensor) -> None: ...

    def learn(self, source_logits: Tensor, labels: Tensor) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
