"""A warning if labelled anchors outweigh the source-like ones, which protect the source."""

from __future__ import annotations

import logging
import sys

from attakit.records import StepResult

_ENOUGH = 0.5  # Gui, Li and Ji, ICLR 2024, section 4.1: below it, forgetting may set in

_log = logging.getLogger(__name__)


class ShareWatch:
    """Warns at the end if fewer than half of a method's anchors are source-like (λ₀ < 0.5).

    Early steps do not count, because source-like samples have to be collected first.

    Parameters
    ----------
    who
        Label of the method.

    Examples
    --------
    >>> ShareWatch("simatta").close()
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._share: float | None = None

    def on_step(self, result: StepResult) -> None:
        self._share = result.training.numbers.get("low_share", self._share)

    def close(self) -> None:
        """Warn if the last known share is too low. A share of 0 is the ablation without them.

        A run that is stopped has not ended: it says nothing.
        """
        if sys.exception() is None and self._share is not None and 0 < self._share < _ENOUGH:
            _log.warning(
                "%s ends with %.0f %% source-like samples among those it trains on (λ₀). Below 50 "
                "%% it may forget the source. Raise method.low_entropy_capacity, or ask for fewer "
                "labels.",
                self._who,
                100 * self._share,
            )
