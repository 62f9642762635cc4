"""Entropy bounds: below e_l trust the source model, above e_h ask about the sample.

The paper sets both by hand for each data set (e_l from 1e-4 to 1e-1, e_h = 1e-2). The right values
depend on the model: a more confident one needs lower ones. Here either may be "auto", which needs
no source data and no extra labels.

e_l. The surest twentieth of recent samples is trusted. A wrong pseudo-label does lasting harm and a
missing one little. So only samples count that the source model is surer of than of nearly all
others, no matter how sure it is in general.

e_h. There must always be candidates to ask about, even if a model is sure and wrong. So e_h is the
median entropy of recent samples, and at most a twentieth of the largest possible entropy.

A fitted e_l never exceeds a fitted e_h: no sample gets a pseudo-label and is also asked about.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attakit.errors import SettingError, check_range

Bound = float | str

SUREST_SHARE = 0.05
UNSURE_SHARE = 0.05  # share of the largest entropy, ln(classes)
MEMORY = 200  # recent samples: enough for a stable share, few enough to forget a domain


class EntropyBounds:
    """The two bounds, fixed or fitted along the stream.

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
        The current bounds.
    """

    def __init__(self, low: Bound = "auto", high: Bound = "auto") -> None:
        self.low_is_fitted = _is_auto("low_entropy_bound", low)
        self.high_is_fitted = _is_auto("high_entropy_bound", high)
        self.low = 0.0 if self.low_is_fitted else float(low)
        self.high = 0.0 if self.high_is_fitted else float(high)
        self._entropies: list[float] = []
        self._source_entropies: list[float] = []

    def observe(self, entropies: Sequence[float], class_count: int) -> None:
        """Record the adapting model's entropies of new samples."""
        if not self.high_is_fitted or not len(entropies):
            return
        self._entropies = [*self._entropies, *entropies][-MEMORY:]
        most = UNSURE_SHARE * math.log(class_count)
        self.high = min(float(np.median(self._entropies)), most)

    def observe_source(self, entropies: Sequence[float]) -> None:
        """Record the source model's entropies of new samples."""
        if not self.low_is_fitted or not len(entropies):
            return
        self._source_entropies = [*self._source_entropies, *entropies][-MEMORY:]
        self.low = float(np.quantile(self._source_entropies, SUREST_SHARE))
        if self._entropies:  # e_h is fitted too
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
