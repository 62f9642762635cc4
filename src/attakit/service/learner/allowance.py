"""How many questions a turn may ask: budget, hourly limit, and a share for the audit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attakit.label.budget import Budget, Cost
from attakit.label.packing import check_state
from attakit.select.label_rate import LabelRate
from attakit.settings.service import ServiceLabelsTable

HOUR = 3600.0
ONE = Fraction(1)
_ROUNDING = 1e-9
EARLY_AUDIT = 20  # audit questions that may have a greater share: enough to prove a large gain
_ALONE = 1  # audit questions per turn if the method itself never asks

Amount = Fraction | float  # a fraction, or infinite


class PlannedBudget(Budget):
    """A budget that pays for every question of a planned turn.

    The planner respects what remains. After that, all questions of the turn are paid, whatever the
    limit is then: the turn may be replayed after the limit was lowered.

    Examples
    --------
    >>> budget = PlannedBudget(2)
    >>> budget.spend(3)
    >>> budget.spent, budget.remaining
    (3, 0)
    """

    @property
    def remaining(self) -> float:
        """Labels left for planning a turn; 0 if the limit was lowered."""
        return max(0, super().remaining)

    @property
    def left(self) -> Amount:
        """The exact rest of the budget."""
        return math.inf if self.limit is None else max(Fraction(0), self.limit - self._spent)

    def spend(self, cost: Cost) -> None:
        """Pay for questions of a planned turn."""
        self._spent += cost

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("PlannedBudget", state, ("spent",))
        self._spent = Fraction(state["spent"])


@dataclass(frozen=True, slots=True)
class PurposeCounts:
    """Questions by purpose: chosen by the method, and drawn for the audit.

    Either how many to ask, or what was asked so far. Then a yes/no question counts as its price.
    """

    learn: float = 0
    audit: int = 0


def question_limit(table: ServiceLabelsTable) -> int | None:
    """Return how many questions the label budget pays for; None without a limit.

    >>> question_limit(ServiceLabelsTable(budget=10, policy="majority", answers=3))
    3
    """
    return None if table.budget == "unlimited" else table.budget // table.cost


def audit_share(table: ServiceLabelsTable, audited: int) -> float:
    """Return the audit's share of the next questions, after a number of audit questions.

    The first ones may have a greater share, to see a large gain soon.

    >>> [audit_share(ServiceLabelsTable(), audited) for audited in (0, EARLY_AUDIT)]
    [0.5, 0.3]
    """
    if audited >= EARLY_AUDIT or table.audit_share == 0:
        return table.audit_share
    return max(table.audit_share, table.early_audit_share)


def asked_at_share(table: ServiceLabelsTable, asked: PurposeCounts) -> PurposeCounts:
    """Return what was asked since the audit got its current share.

    >>> asked_at_share(ServiceLabelsTable(), PurposeCounts(learn=30, audit=EARLY_AUDIT + 2))
    PurposeCounts(learn=10.0, audit=2)
    """
    early = audit_share(table, 0)
    if audit_share(table, asked.audit) == early:
        return asked
    before = EARLY_AUDIT * (1 - early) / early
    return PurposeCounts(max(0.0, asked.learn - before), asked.audit - EARLY_AUDIT)


def label_rate(table: ServiceLabelsTable, price: Fraction = ONE) -> LabelRate:
    """Return the label rate of the method: the budget without the audit's part, if it is spread.

    `price` is the cost of one of its questions.

    >>> label_rate(ServiceLabelsTable(budget=100, spread_over=1000, audit_share=0.2)).per_1000
    80.0
    """
    per_1000, limit = table.per_1000, question_limit(table)
    if table.spread_over is not None and limit is not None:
        per_1000 = 1000 * (1 - table.audit_share) * limit / table.spread_over / float(price)
    return LabelRate(per_1000=per_1000, first=table.first, at_drift=table.at_drift)


def hourly_limit(table: ServiceLabelsTable) -> float:
    """Return how many questions may be asked per hour; infinite without a limit."""
    return math.inf if table.per_hour == "unlimited" else table.per_hour // table.cost


def share_out(
    share: float,
    available: Amount,
    batch_size: int,
    asked: PurposeCounts,
    random: np.random.Generator,
    *,
    method_asks: bool = True,
    price: Fraction = ONE,
) -> PurposeCounts:
    """Divide the questions of a turn between the method and the audit.

    The audit gets `share` of what is spent. A fraction is rounded up or down at random, so that the
    share is right on average.

    Parameters
    ----------
    available
        Questions about the class that may be asked now; can be infinite.
    batch_size
        Number of samples in the turn.
    asked
        Questions asked so far; refunds are not subtracted.
    method_asks
        True if the method ever asks. If not, the audit sets its own pace.
    price
        Cost of a question of the method; an audit question costs 1.

    Examples
    --------
    >>> share_out(0.2, 10, 50, PurposeCounts(learn=8, audit=0), np.random.default_rng(0))
    PurposeCounts(learn=7, audit=2)
    """
    due = _audit_due(share, asked, random, method_asks=method_asks)
    audit = int(max(0, min(due, available, batch_size)))
    learn = min(_affordable(available - audit, share, price), batch_size - audit)
    return PurposeCounts(int(max(0, learn)), audit)


def _affordable(rest: Amount, share: float, price: Fraction) -> float:
    """Return how many questions the method's part pays for, at most the whole rest."""
    if math.isinf(rest):
        return math.inf
    wanted = math.ceil(float(rest) * (1 - share) / float(price) - _ROUNDING)
    return min(wanted, math.floor(Fraction(rest) / price))


def _audit_due(
    share: float, asked: PurposeCounts, random: np.random.Generator, *, method_asks: bool
) -> int:
    if share == 0:
        return 0
    if share == 1 or not method_asks:
        return _ALONE
    owed = asked.learn * share / (1 - share) - asked.audit
    return math.floor(max(0.0, owed) + _ROUNDING + random.random() * (1 - 2 * _ROUNDING))
