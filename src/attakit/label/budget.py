"""Budget: how many labels may be had."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from attakit.errors import BudgetExhausted, LabelError, StateError, check_count
from attakit.label.packing import check_state
from attakit.queries import Allowance


class Budget:
    """A hard cap on labels. An open question counts as spent until it is refunded.

    Parameters
    ----------
    limit
        Labels that may be had in all; None sets no limit.

    Examples
    --------
    >>> budget = Budget(10)
    >>> budget.spend(4)
    >>> budget.refund(1)
    >>> budget.spent, budget.remaining
    (3, 7)
    """

    def __init__(self, limit: int | None) -> None:
        if limit is not None:
            check_count("Budget", "limit", limit, at_least=0)
        self.limit = limit
        self.spent = 0  # labels had or asked for, refunds subtracted

    @property
    def remaining(self) -> float:
        """Labels that may still be asked for; infinite without a limit."""
        return math.inf if self.limit is None else self.limit - self.spent

    @property
    def allowance(self) -> Allowance:
        """The same for `Method.step`, as a whole number; huge without a limit."""
        return Allowance(sys.maxsize if self.limit is None else self.limit - self.spent)

    def spend(self, count: int) -> None:
        """Take labels out of the budget, all of them or none."""
        _check_count("spend", count)
        if count > self.remaining:
            raise BudgetExhausted(
                f"Budget: {count} more labels asked for, but {self.spent} of {self.limit} are "
                f"spent. Ask for at most {self.allowance.count}, or start with a larger limit."
            )
        self.spent += count

    def refund(self, count: int) -> None:
        """Give back labels that were asked for and never came."""
        _check_count("refund", count)
        if count > self.spent:
            raise LabelError(
                f"Budget: cannot refund {count} labels when {self.spent} are spent. "
                f"Refund each skipped or expired question once."
            )
        self.spent -= count

    def state_dict(self) -> dict[str, Any]:
        return {"spent": self.spent}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Budget", state, ("spent",))
        if self.limit is not None and state["spent"] > self.limit:
            raise StateError(
                f"Budget: the saved run has spent {state['spent']} labels, more than the limit of "
                f"{self.limit}. Resume with a limit of at least {state['spent']}."
            )
        self.spent = state["spent"]


def _check_count(action: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise LabelError(
            f"Budget: can only {action} a whole number of labels, 0 or more, got {count!r}."
        )
