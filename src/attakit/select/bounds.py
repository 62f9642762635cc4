"""Entropy bounds: below e_l the source model is trusted, above e_h the adapting model is asked.

The paper sets both by hand for each data set (e_l from 1e-4 to 1e-1, e_h = 1e-2), and the right
values depend on the model: one that is surer of itself needs lower ones. Here either may be
"auto", which needs no source data and no labels beyond those that are asked for anyway.

e_l. The surest twentieth of recent samples is trusted. A wrong pseudo-label does lasting harm and a
missing one little, so only samples that the source model is surer of than of nearly all others
will do, however sure it is in general.

e_h. What matters is that questions never dry up, even when a model is sure and wrong. So e_h is
the median entropy of recent samples, and no more than a twentieth of the largest entropy that
there could be.

A fitted e_l never exceeds a fitted e_h: no sample is sure enough for a pseudo-label and unsure
enough to ask about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attakit.errors import SettingError, check_range

Bound = float | str

SUREST_SHARE = 0.05
UNSURE_SHARE = 0.05  # of the largest entropy, ln(classes)
MEMORY = 200  # recent samples: enough for a share to mean something, few enough to forget a domain


class EntropyBounds:
    """The two bounds, fixed or fitted to the model along the stream.

    Parameters
    ----------
    low
        e_l in nats, or "auto".
    high
        e_h in nats, or "auto".

    Examples
    --------
    >>> bounds = EntropyBounds("auto", 0.01)
    >>> bounds.observe_source([0.1, 0.2, 0.3])
    >>> round(bounds.low, 2), bounds.high
    (0.11, 0.01)

    Attributes
    ----------
    low, high
        The bounds as they are now.
    """

    def __init__(self, low: Bound = "auto", high: Bound = "auto") -> None:
        self.low_is_fitted = _is_auto("low_entropy_bound", low)
        self.high_is_fitted = _is_auto("high_entropy_bound", high)
        self.low = 0.0 if self.low_is_fitted else float(low)
        self.high = 0.0 if self.high_is_fitted else float(high)
        self._entropies: list[float] = []
        self._source_entropies: list[float] = []

    def observe(self, entropies: Sequence[float], class_count: int) -> None:
        """Take in how unsure the adapting model is about new samples."""
        if not self.high_is_fitted or not len(entropies):
            return
        self._entropies = [*self._entropies, *entropies][-MEMORY:]
        most = UNSURE_SHARE * math.log(class_count)
        self.high = min(float(np.median(self._entropies)), most)

    def observe_source(self, entropies: Sequence[float]) -> None:
        """Take in how unsure the source model is about new samples."""
        if not self.low_is_fitted or not len(entropies):
            return
        self._source_entropies = [*self._source_entropies, *entropies][-MEMORY:]
        self.low = float(np.quantile(self._source_entropies, SUREST_SHARE))
        if self._entropies:  # e_h is fitted, too
            self.low = min(self.low, self.high)

    def state_dict(self) -> dict[str, Any]:
        return {
            "low": self.low,
            "high": self.high,
            "entropies": self._entropies,
            "source_entropies": self._source_entropies,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.low = state["low"]
        self.high = state["high"]
        self._entropies = list(state["entropies"])
        self._source_entropies = list(state["source_entropies"])


def _is_auto(name: str, bound: Bound) -> bool:
    if bound == "auto":
        return True
    if isinstance(bound, str):
        raise SettingError(f"SimATTA: {name} must be a number or 'auto', got {bound!r}.")
    check_range("SimATTA", name, bound, at_least=0)
    return False
