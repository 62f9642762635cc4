import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import SettingError
from attakit.queries import Allowance
from attakit.select.label_rate import LabelRate


def asked(rate, batches, budget, *, drifts=(), paces=None, ends=False):
    """How many labels each batch is asked for, within a budget."""
    counts = []
    for number, samples in enumerate(batches):
        left = sum(batches[number:]) if ends else None
        pace = 1.0 if paces is None else paces[number]
        allowance = Allowance(budget, pace=pace, samples_left=left)
        count = rate.due(samples, allowance, drifted=number in drifts)
        rate.spend(count)
        budget -= count
        counts.append(count)
    return counts


def test_a_rate_of_labels_per_thousand_samples_is_kept():
    assert sum(asked(LabelRate(per_1000=30, first=0), [100] * 100, budget=1000)) == 300
    assert sum(asked(LabelRate(per_1000=30, first=0), [1] * 10_000, budget=1000)) == 300


def test_the_first_batch_and_a_drift_get_more():
    rate = LabelRate(per_1000=10, first=5, at_drift=4)
    assert asked(rate, [100] * 5, budget=99, drifts={3}) == [6, 1, 1, 5, 1]


def test_a_budget_is_spread_over_the_samples():
    rate = LabelRate(spread_over=1000, first=0, at_drift=0)
    counts = asked(rate, [100] * 10, budget=50)
    assert counts == [5] * 10
    assert sum(asked(LabelRate(spread_over=1000), [1] * 1000, budget=50)) == 50


@pytest.mark.parametrize("size", [1, 16, 100])
def test_by_default_the_whole_budget_is_spread_over_a_stream_whose_length_is_known(size):
    counts = asked(LabelRate(), [size] * (3400 // size), budget=150, ends=True)

    assert sum(counts) == 150
    assert sum(counts[: len(counts) // 2]) in range(75, 85)


def test_the_extra_labels_at_first_leave_most_of_a_small_budget_for_later():
    assert asked(LabelRate(), [100] * 10, budget=20, ends=True) == [4, 1, 2, 2, 2, 1, 2, 2, 2, 2]


def test_by_default_a_stream_without_an_end_or_a_budget_gets_thirty_per_thousand():
    assert sum(asked(LabelRate(first=0), [100] * 10, budget=99)) == 30
    assert sum(asked(LabelRate(first=0), [100] * 10, budget=sys.maxsize, ends=True)) == 30


def test_a_refund_is_spread_over_what_is_left_of_the_stream():
    rate = LabelRate(first=0)
    early = asked(rate, [100] * 5, budget=50, ends=False)  # thirty per thousand until now
    later = asked(rate, [100] * 5, budget=50, ends=True)

    assert (sum(early), sum(later)) == (15, 50)


def test_a_faster_pace_asks_more_and_counts_for_more_steps():
    rate = LabelRate(per_1000=20, first=0)
    steps = []
    for pace in (1.0, 1.0, 2.0, 1.0, 1.5, 1.5):
        rate.spend(rate.due(100, Allowance(99, pace=pace)))
        steps.append(rate.step)

    assert asked(LabelRate(per_1000=20, first=0), [100] * 3, 99, paces=[1, 3, 1]) == [2, 6, 2]
    assert steps == [0, 1, 3, 4, 5, 7]


def test_extra_labels_take_at_most_a_quarter_of_a_batch_and_the_rest_comes_later():
    assert asked(LabelRate(per_1000=0, first=10), [8] * 6, budget=99) == [2, 2, 2, 2, 2, 0]


def test_a_rate_above_a_quarter_is_kept():
    assert asked(LabelRate(per_1000=500, first=0), [8] * 3, budget=99) == [4, 4, 4]


def test_an_empty_batch_asks_nothing_and_is_not_the_first():
    rate = LabelRate(per_1000=0, first=1)
    assert asked(rate, [0, 4, 4], budget=9) == [0, 1, 0]


def test_what_cannot_be_asked_does_not_pile_up_without_end():
    rate = LabelRate(per_1000=1000)
    asked(rate, [100] * 1000, budget=0)
    assert rate.owed <= 100


@given(
    st.lists(st.integers(0, 200), max_size=30),
    st.integers(0, 60),
    st.sampled_from([{"per_1000": 500}, {"spread_over": 100}, {"spread_over": 7}, {}]),
    st.booleans(),
)
def test_no_batch_gets_more_than_the_budget_or_its_samples(batches, budget, settings, ends):
    counts = asked(LabelRate(**settings), batches, budget, ends=ends)
    assert sum(counts) <= budget
    assert all(0 <= count <= samples for count, samples in zip(counts, batches, strict=True))


def test_it_is_saved_and_loaded():
    rate, other = LabelRate(), LabelRate()
    asked(rate, [100] * 3, budget=9)
    other.load_state_dict(rate.state_dict())
    assert asked(rate, [70] * 9, budget=99) == asked(other, [70] * 9, budget=99)
    assert rate.step == other.step == 11


@pytest.mark.parametrize(
    "settings",
    [
        {"per_1000": -1},
        {"spread_over": 0},
        {"per_1000": 1, "spread_over": 9},
        {"first": -1},
        {"at_drift": 0.5},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(SettingError, match="LabelRate"):
        LabelRate(**settings)


def test_a_number_of_labels_per_batch_does_not_depend_on_its_size():
    assert asked(LabelRate(per_batch=1, first=0), [100, 1, 16, 2], budget=99) == [1] * 4
    assert asked(LabelRate(per_batch=0.5, first=0), [100] * 6, budget=99) == [0, 1] * 3
    assert asked(LabelRate(per_batch=2, first=0), [100] * 4, budget=5, ends=True) == [2, 2, 1, 0]


def test_per_batch_a_drift_and_the_first_batch_get_more():
    rate = LabelRate(per_batch=3, first=7, at_drift=5)
    assert asked(rate, [100] * 4, budget=99, drifts={2}) == [10, 3, 8, 3]


def test_per_batch_what_a_batch_cannot_use_is_lost():
    rate = LabelRate(per_batch=1, first=0)
    for _ in range(10):
        assert rate.due(100, Allowance(0)) == 0
    assert rate.due(100, Allowance(99)) == 1


def test_only_one_pace_may_be_given():
    with pytest.raises(SettingError, match="only one of per_1000, spread_over and per_batch"):
        LabelRate(per_1000=3, per_batch=1)


def test_a_rate_says_whether_anything_was_set():
    assert LabelRate().is_usual
    for settings in ({"per_1000": 30}, {"spread_over": 9}, {"per_batch": 1}, {"first": 0}):
        assert not LabelRate(**settings).is_usual
