import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import SettingError
from attakit.select.label_rate import LabelRate


def asked(rate, batches, budget, drifts=()):
    """How many labels each batch is asked for, within a budget."""
    counts = []
    for number, samples in enumerate(batches):
        count = rate.due(samples, budget, drifted=number in drifts)
        rate.spend(count)
        budget -= count
        counts.append(count)
    return counts


def test_a_rate_of_labels_per_thousand_samples_is_kept():
    assert sum(asked(LabelRate(per_thousand=30, first=0), [100] * 100, budget=1000)) == 300
    assert sum(asked(LabelRate(per_thousand=30, first=0), [1] * 10_000, budget=1000)) == 300


def test_the_first_batch_and_a_drift_get_more():
    rate = LabelRate(per_thousand=10, first=5, at_drift=4)
    assert asked(rate, [100] * 5, budget=99, drifts={3}) == [6, 1, 1, 5, 1]


def test_a_budget_is_spread_over_the_samples():
    rate = LabelRate(spread_over=1000, first=0, at_drift=0)
    counts = asked(rate, [100] * 10, budget=50)
    assert counts == [5] * 10
    assert sum(asked(LabelRate(spread_over=1000), [1] * 1000, budget=50)) in (49, 50)


def test_at_most_a_quarter_of_a_batch_is_asked_about_and_the_rest_later():
    assert asked(LabelRate(per_thousand=0, first=10), [8] * 6, budget=99) == [2, 2, 2, 2, 2, 0]


def test_an_empty_batch_asks_nothing_and_is_not_the_first():
    rate = LabelRate(per_thousand=0, first=1)
    assert asked(rate, [0, 4, 4], budget=9) == [0, 1, 0]


def test_what_cannot_be_asked_does_not_pile_up_without_end():
    rate = LabelRate(per_thousand=1000)
    asked(rate, [100] * 1000, budget=0)
    assert rate.owed <= 100


@given(
    st.lists(st.integers(0, 200), max_size=30),
    st.integers(0, 60),
    st.one_of(st.none(), st.integers(1, 500)),
)
def test_no_batch_gets_more_than_the_budget_or_its_samples(batches, budget, spread_over):
    rate = LabelRate(per_thousand=500, spread_over=spread_over)
    counts = asked(rate, batches, budget)
    assert sum(counts) <= budget
    assert all(0 <= count <= samples for count, samples in zip(counts, batches, strict=True))


def test_it_is_saved_and_loaded():
    rate, other = LabelRate(), LabelRate()
    asked(rate, [100] * 3, budget=9)
    other.load_state_dict(rate.state_dict())
    assert asked(rate, [70] * 9, budget=99) == asked(other, [70] * 9, budget=99)


@pytest.mark.parametrize(
    "settings",
    [{"per_thousand": -1}, {"spread_over": 0}, {"first": -1}, {"at_drift": 0.5}],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(SettingError, match="LabelRate"):
        LabelRate(**settings)
