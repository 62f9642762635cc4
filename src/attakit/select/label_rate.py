"""How many labels to ask for, in terms of samples: a rate per thousand, or a budget spread out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attakit.errors import check_count, check_range
from attakit.select.pace import whole

_MOST_OWED = 50.0  # what an allowance of 0 holds back does not pile up without end
_LARGEST_SHARE = 4  # at most a quarter of a batch is asked about


class LabelRate:
    """Says how many labels are due, batch after batch. Fractions add up.

    Parameters
    ----------
    per_thousand
        Labels per 1,000 samples, after the first ones.
    spread_over
        Spread what the budget still allows evenly over this many samples instead; None uses
        `per_thousand`. After that many samples all that is left may be asked.
    first
        Labels on top of that at the first batch.
    at_drift
        Labels on top of that where a new domain begins.

    Examples
    --------
    >>> rate = LabelRate(per_thousand=25, first=3)
    >>> counts = []
    >>> for _ in range(4):
    ...     counts.append(rate.due(samples=100, allowance=50))
    ...     rate.spend(counts[-1])
    >>> counts
    [5, 3, 2, 3]
    """

    def __init__(
        self,
        *,
        per_thousand: float = 30.0,
        spread_over: int | None = None,
        first: int = 10,
        at_drift: int = 8,
    ) -> None:
        check_range("LabelRate", "labels_per_1000", per_thousand, at_least=0)
        if spread_over is not None:
            check_count("LabelRate", "spread_over", spread_over, at_least=1)
        check_count("LabelRate", "first", first, at_least=0)
        check_count("LabelRate", "at_drift", at_drift, at_least=0)
        self.per_thousand = per_thousand
        self.spread_over = spread_over
        self.first = first
        self.at_drift = at_drift
        self.seen = 0
        self.owed = 0.0

    def due(self, samples: int, allowance: int, *, drifted: bool = False, pace: int = 1) -> int:
        """Count a batch, and say how many of its samples to ask about.

        Parameters
        ----------
        samples
            Size of the batch.
        allowance
            Labels that the budget still allows.
        drifted
            Whether a new domain begins with the batch.
        pace
            How many times the usual rate to ask at.
        """
        if samples == 0:
            return 0
        extra = self.first if self.seen == 0 else self.at_drift if drifted else 0
        owed = self.owed + extra + pace * samples * self._rate(allowance)
        self.owed = min(owed, max(_MOST_OWED, float(samples)))
        self.seen += samples
        return max(0, min(whole(self.owed), allowance, max(1, samples // _LARGEST_SHARE)))

    def spend(self, count: int) -> None:
        """Note how many were asked about in fact."""
        self.owed -= count

    def _rate(self, allowance: int) -> float:
        """Labels per sample."""
        if self.spread_over is None:
            return self.per_thousand / 1000
        return max(0.0, allowance - self.owed) / max(self.spread_over - self.seen, 1)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "owed": self.owed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seen, self.owed = state["seen"], state["owed"]
