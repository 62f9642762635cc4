"""The budget is a hard cap, with exact refunds."""

import math
import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import BudgetExhausted, LabelError, SettingError, StateError
from attakit.label import Budget
from attakit.queries import Allowance, Query, SampleId


def test_spending_and_refunding_move_what_remains() -> None:
    budget = Budget(5)

    budget.spend(4)
    budget.refund(3)

    assert (budget.spent, budget.remaining, budget.allowance.count) == (1, 4, 4)


def test_all_of_the_limit_can_be_spent() -> None:
    budget = Budget(5)

    budget.spend(5)

    assert budget.remaining == 0


def test_spending_too_much_raises_and_changes_nothing() -> None:
    budget = Budget(5)
    budget.spend(3)

    with pytest.raises(BudgetExhausted) as caught:
        budget.spend(3)

    assert str(caught.value) == (
        "Budget: 3 more labels asked for, but 3 of 5 are spent. "
        "Ask for at most 2, or start with a larger limit."
    )
    assert budget.spent == 3


def test_refunding_more_than_was_spent_raises_and_changes_nothing() -> None:
    budget = Budget(5)
    budget.spend(1)

    with pytest.raises(LabelError, match="cannot refund 2 labels when 1 are spent"):
        budget.refund(2)

    assert budget.spent == 1


def test_without_a_limit_nothing_runs_out() -> None:
    budget = Budget(None)

    budget.spend(10**9)

    assert budget.remaining == math.inf
    assert budget.allowance == Allowance(sys.maxsize)


def test_a_budget_of_nothing_allows_nothing() -> None:
    with pytest.raises(BudgetExhausted):
        Budget(0).spend(1)


@pytest.mark.parametrize("count", [-1, 1.0, True, "2"])
@pytest.mark.parametrize("action", ["spend", "refund"])
def test_only_whole_counts_are_accepted(action: str, count: object) -> None:
    budget = Budget(5)
    budget.spend(2)

    with pytest.raises(
        LabelError, match=f"can only {action} a whole number of labels or a Fraction"
    ):
        getattr(budget, action)(count)

    assert budget.spent == 2


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (-1, "Budget: limit must be at least 0, got -1."),
        (2.5, "Budget: limit must be a whole number, got 2.5."),
        (True, "Budget: limit must be a whole number, got True."),
    ],
)
def test_bad_limit_is_refused(limit: object, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        Budget(limit)  # type: ignore[arg-type]

    assert str(caught.value) == message


def test_state_continues_with_what_was_spent() -> None:
    budget, resumed = Budget(5), Budget(5)
    budget.spend(3)

    resumed.load_state_dict(budget.state_dict())

    assert resumed.remaining == 2


def test_state_that_spent_more_than_the_limit_is_refused() -> None:
    large, small = Budget(5), Budget(2)
    large.spend(3)

    with pytest.raises(StateError, match=r"spent 3 labels, more than the limit of 2\. Resume with"):
        small.load_state_dict(large.state_dict())

    assert small.spent == 0


@given(
    limit=st.integers(0, 20),
    moves=st.lists(st.tuples(st.booleans(), st.integers(0, 10))),
)
def test_spent_stays_between_nothing_and_the_limit(
    limit: int, moves: list[tuple[bool, int]]
) -> None:
    budget, expected = Budget(limit), 0
    for spends, count in moves:
        after = expected + count if spends else expected - count
        if 0 <= after <= limit:
            expected = after
            (budget.spend if spends else budget.refund)(count)
        else:
            with pytest.raises(LabelError):
                (budget.spend if spends else budget.refund)(count)
        assert budget.spent == expected
        assert budget.remaining == limit - expected


def test_ten_questions_at_a_tenth_cost_exactly_one_label() -> None:
    budget = Budget(1, yes_no_price=0.1)
    question = Query(SampleId("a"), 0, proposed=2)

    for _ in range(10):
        budget.spend(budget.price(question))

    assert (budget.spent, budget.remaining, budget.allowance.yes_no) == (1, 0, 0)
    with pytest.raises(BudgetExhausted, match=r"0\.1 more labels asked for, but 1 of 1 are spent"):
        budget.spend(budget.price(question))


def test_what_is_left_pays_for_yes_no_questions_where_a_class_is_too_dear() -> None:
    budget = Budget(2, yes_no_price=0.3)

    budget.spend(Fraction(13, 10))

    assert (budget.allowance.count, budget.allowance.yes_no) == (0, 2)
    assert budget.allowance.of("yes_no").count == 2


def test_a_spent_fraction_survives_saving() -> None:
    budget, resumed = Budget(5), Budget(5)
    budget.spend(Fraction(1, 3))

    resumed.load_state_dict(budget.state_dict())
    resumed.spend(Fraction(2, 3))

    assert resumed.spent == 1


def test_a_price_of_nothing_is_refused() -> None:
    with pytest.raises(SettingError, match="yes_no_price must be greater than 0"):
        Budget(5, yes_no_price=0)
