"""The label rate: labels per 1,000 samples, or a budget spread over a number of samples."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from attakit.errors import SettingError, check_count, check_range
from attakit.queries import Allowance

USUAL_PER_1000 = 30.0  # if there is no budget to spread, or the length of the stream is unknown
USUAL_FIRST, USUAL_AT_DRIFT = 10, 8

_ROUNDING = 1e-9
_UNLIMITED = sys.maxsize // 2  # an allowance without a limit is about twice this
_MOST_OWED = 50.0  # limit of what builds up while an allowance is 0
_LARGEST_SHARE = 4  # extra labels take at most a quarter of a batch
_FIRST_SHARE = 10  # at first, extra labels take at most a tenth of a spread budget


def whole(number: float) -> int:
    """Return the whole part of a number that decimal settings add up to.

    >>> int(0.29 * 100), whole(0.29 * 100)
    (28, 29)
    """
    return int(number + _ROUNDING)


class LabelRate:
    """Computes how many labels are due, batch after batch. Fractions add up.

    Without `per_1000`, `spread_over` and `per_batch`, it spreads the budget over the remaining
    samples, if the allowance knows their number. Otherwise it asks for 30 labels per 1,000 samples.

    Parameters
    ----------
    per_1000
        Labels per 1,000 samples, within the budget.
    spread_over
        Spread the rest of the budget evenly over this many samples instead. After that, the whole
        rest may be asked for.
    per_batch
        Labels per batch instead, for any batch size. What a batch cannot use is not carried over.
    first
        Extra labels at the first batch; at most a tenth of a spread budget.
    at_drift
        Extra labels at the start of a new domain, if the method detects it.

    Examples
    --------
    >>> rate = LabelRate(per_1000=25, first=3)
    >>> counts = []
    >>> for _ in range(4):
    ...     counts.append(rate.due(100, Allowance(50)))
    ...     rate.spend(counts[-1])
    >>> counts
    [5, 3, 2, 3]
    """

    def __init__(
        self,
        *,
        per_1000: float | None = None,
        spread_over: int | None = None,
        per_batch: float | None = None,
        first: int = USUAL_FIRST,
        at_drift: int = USUAL_AT_DRIFT,
    ) -> None:
        if per_1000 is not None:
            check_range("LabelRate", "per_1000", per_1000, at_least=0)
        if spread_over is not None:
            check_count("LabelRate", "spread_over", spread_over, at_least=1)
        if per_batch is not None:
            check_range("LabelRate", "per_batch", per_batch, at_least=0)
        if [per_1000, spread_over, per_batch].count(None) < 2:
            raise SettingError(
                f"LabelRate: give only one of per_1000, spread_over and per_batch, got {per_1000}, "
                f"{spread_over} and {per_batch}."
            )
        check_count("LabelRate", "first", first, at_least=0)
        check_count("LabelRate", "at_drift", at_drift, at_least=0)
        self.per_1000 = per_1000
        self.spread_over = spread_over
        self.per_batch = per_batch
        self.first = first
        self.at_drift = at_drift
        self.seen = 0
        self.owed = 0.0
        self.clock = 0.0

    @property
    def is_usual(self) -> bool:
        """True if all settings have their defaults."""
        no_pace = self.per_1000 is None and self.spread_over is None and self.per_batch is None
        return no_pace and (self.first, self.at_drift) == (USUAL_FIRST, USUAL_AT_DRIFT)

    @property
    def step(self) -> int:
        """Number of the latest batch; a batch at twice the pace counts as two."""
        return max(0, int(self.clock) - 1)

    def due(self, samples: int, allowance: Allowance, *, drifted: bool = False) -> int:
        """Count a batch, and return how many of its samples to ask about.

        Parameters
        ----------
        samples
            Size of the batch.
        allowance
            The rest of the budget, the pace, and the number of remaining samples.
        drifted
            True if a new domain begins with the batch.
        """
        if samples == 0:
            return 0
        regular = allowance.pace * self._share(samples, allowance)
        extra = self._extra(allowance, drifted)
        self.owed = min(self.owed + regular + extra, self._most_owed(samples, regular + extra))
        self.seen += samples
        self.clock += allowance.pace
        most = max(1, samples // _LARGEST_SHARE, math.ceil(regular))
        return max(0, min(whole(self.owed), allowance.count, most, samples))

    def spend(self, count: int) -> None:
        """Record how many samples were actually asked about."""
        self.owed -= count

    def _share(self, samples: int, allowance: Allowance) -> float:
        """Return the labels for a batch at the usual pace."""
        if self.per_batch is not None:
            return self.per_batch
        if not self._spreads(allowance):
            usual = USUAL_PER_1000 if self.per_1000 is None else self.per_1000
            return samples * usual / 1000
        left = allowance.samples_left or 0
        if self.spread_over is not None:
            left = self.spread_over - self.seen
        return max(0.0, allowance.count - self.owed) * min(1.0, samples / max(left, 1))

    def _most_owed(self, samples: int, now: float) -> float:
        """Return the maximum debt after a batch with `now` due labels."""
        return max(_MOST_OWED, float(samples)) if self.per_batch is None else max(1.0, now)

    def _spreads(self, allowance: Allowance) -> bool:
        if self.spread_over is not None:
            return True
        known = allowance.samples_left is not None and allowance.count < _UNLIMITED
        return self.per_1000 is None and self.per_batch is None and known

    def _extra(self, allowance: Allowance, drifted: bool) -> int:
        if self.seen:
            return self.at_drift if drifted else 0
        spreads = self._spreads(allowance)
        return min(self.first, allowance.count // _FIRST_SHARE) if spreads else self.first

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen, "owed": self.owed, "clock": self.clock}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.seen, self.owed, self.clock = state["seen"], state["owed"], state["clock"]
