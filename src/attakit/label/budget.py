"""Budget: the maximum number of labels, and the cost of a question."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from attakit.errors import BudgetExhausted, LabelError, StateError, check_count, check_range
from attakit.label.packing import check_state
from attakit.queries import Allowance, Query

Cost = int | Fraction  # in labels


class Budget:
    """A hard cap on labels. An open question counts as spent until it is refunded.

    A question about the class costs one label. A yes/no question may cost less. Costs are added up
    as fractions, so they are exact: ten questions at 0.1 cost 1.

    Parameters
    ----------
    limit
        Maximum number of labels; None sets no limit.
    yes_no_price
        Cost of a yes/no question, in labels.

    Examples
    --------
    >>> budget = Budget(10)
    >>> budget.spend(4)
    >>> budget.refund(1)
    >>> budget.spent, budget.remaining
    (3, 7)
    >>> Budget(10, yes_no_price=0.25).allowance.yes_no
    40
    """

    def __init__(self, limit: int | None, *, yes_no_price: float = 1.0) -> None:
        if limit is not None:
            check_count("Budget", "limit", limit, at_least=0)
        check_range("Budget", "yes_no_price", yes_no_price, above=0, at_most=sys.maxsize)
        self.limit = limit
        self.yes_no_price = yes_no_price
        self._spent = Fraction(0)  # labels received or asked for, minus refunds

    @property
    def spent(self) -> float:
        """Labels received or asked for, minus refunds. Whole numbers are ints."""
        return as_number(self._spent)

    @property
    def remaining(self) -> float:
        """Labels left in the budget; infinite without a limit."""
        return math.inf if self.limit is None else as_number(self.limit - self._spent)

    @property
    def allowance(self) -> Allowance:
        """The rest of the budget as numbers of questions; huge without a limit."""
        if self.limit is None:
            return Allowance(sys.maxsize)
        left = max(Fraction(0), self.limit - self._spent)
        price = exact(self.yes_no_price)
        return Allowance(math.floor(left), yes_no=None if price == 1 else math.floor(left / price))

    def price(self, query: Query) -> Fraction:
        """Return the cost of a question, in labels."""
        return Fraction(1) if query.kind == "class" else exact(self.yes_no_price)

    def spend(self, cost: Cost) -> None:
        """Take labels out of the budget: all of them or none."""
        _check_cost("spend", cost)
        if self.limit is not None and cost > self.limit - self._spent:
            raise BudgetExhausted(
                f"Budget: {as_number(Fraction(cost))} more labels asked for, but {self.spent} of "
                f"{self.limit} are spent. Ask for at most {self.remaining}, or start with a larger "
                f"limit."
            )
        self._spent += cost

    def refund(self, cost: Cost) -> None:
        """Give back labels that were asked for and never came."""
        _check_cost("refund", cost)
        if cost > self._spent:
            raise LabelError(
                f"Budget: cannot refund {as_number(Fraction(cost))} labels when {self.spent} are "
                f"spent. Refund each skipped or expired question once."
            )
        self._spent -= cost

    def state_dict(self) -> dict[str, Any]:
        # Fractions are saved as texts such as "5/4", so that nothing is rounded.
        whole = self._spent.denominator == 1
        return {"spent": int(self._spent) if whole else str(self._spent)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Budget", state, ("spent",))
        spent = Fraction(state["spent"])
        if self.limit is not None and spent > self.limit:
            raise StateError(
                f"Budget: the saved run has spent {as_number(spent)} labels, more than the limit "
                f"of {self.limit}. Resume with a limit of at least {math.ceil(spent)}."
            )
        self._spent = spent


def as_number(amount: Fraction) -> float:
    """Return a fraction as a number for people: an int if it is whole.

    >>> as_number(Fraction(3)), as_number(Fraction(5, 4))
    (3, 1.25)
    """
    return int(amount) if amount.denominator == 1 else float(amount)


def exact(price: float) -> Fraction:
    """Return the exact fraction of a decimal number as written.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    # Through its text, because the float 0.1 is not exactly a tenth.
    return Fraction(str(price))


def _check_cost(action: str, cost: Cost) -> None:
    if isinstance(cost, bool) or not isinstance(cost, (int, Fraction)) or cost < 0:
        raise LabelError(
            f"Budget: can only {action} a whole number of labels or a Fraction, 0 or more, got "
            f"{cost!r}."
        )
