import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import SettingError
from attakit.select.bounds import MEMORY, SUREST_SHARE, EntropyBounds

entropies_along_a_stream = st.lists(st.floats(1e-6, 2.0), min_size=1, max_size=3 * MEMORY)


def test_numbers_stay_as_they_are():
    bounds = EntropyBounds(1e-3, 1e-2)

    bounds.observe([1.0, 2.0], class_count=10)
    bounds.observe_source([1e-9] * 50)

    assert (bounds.low, bounds.high) == (1e-3, 1e-2)


def test_nothing_is_trusted_before_anything_was_seen():
    assert EntropyBounds("auto", "auto").low == 0.0


def test_the_surest_twentieth_is_trusted():
    bounds = EntropyBounds("auto")

    bounds.observe_source([0.001 * number for number in range(1, 101)])

    assert sum(0.001 * number < bounds.low for number in range(1, 101)) == 5


def test_low_bound_forgets_an_earlier_domain():
    bounds = EntropyBounds("auto")
    bounds.observe_source([0.5] * MEMORY)
    assert bounds.low == 0.5

    bounds.observe_source([0.4] * MEMORY)

    assert bounds.low == 0.4


@given(entropies_along_a_stream)
def test_never_more_than_the_surest_share_of_recent_samples_is_trusted(entropies):
    bounds = EntropyBounds("auto")
    bounds.observe_source(entropies)

    recent = entropies[-MEMORY:]
    assert sum(entropy < bounds.low for entropy in recent) <= SUREST_SHARE * len(recent) + 1


def test_high_bound_is_the_median_of_a_sure_model():
    bounds = EntropyBounds("auto", "auto")

    bounds.observe([0.001, 0.002, 0.003], class_count=10)

    assert bounds.high == 0.002


def test_high_bound_of_an_unsure_model_is_a_twentieth_of_the_largest_entropy():
    bounds = EntropyBounds("auto", "auto")

    bounds.observe([1.0, 2.0], class_count=10)

    assert bounds.high == pytest.approx(0.05 * 2.302585)


def test_half_of_recent_samples_are_always_unsure_enough_to_ask():
    bounds = EntropyBounds("auto", "auto")
    entropies = [0.01 * number for number in range(1, 101)]

    for entropy in entropies:  # batches of one
        bounds.observe([entropy], class_count=10)

    assert sum(entropy > bounds.high for entropy in entropies) >= 50


def test_an_empty_batch_changes_nothing():
    bounds = EntropyBounds("auto", "auto")
    bounds.observe([0.01], class_count=10)

    bounds.observe([], class_count=10)

    assert bounds.high == 0.01


@given(entropies_along_a_stream)
def test_saved_bounds_go_on_as_if_never_stopped(entropies):
    half = len(entropies) // 2
    one, other = EntropyBounds(), EntropyBounds()
    one.observe(entropies[:half], 3)
    one.observe_source(entropies[:half])

    other.load_state_dict(one.state_dict())
    for bounds in (one, other):
        bounds.observe(entropies[half:], 3)
        bounds.observe_source(entropies[half:])

    assert one.state_dict() == other.state_dict()


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (("low", 0.1), "SimATTA: low_entropy_bound must be a number or 'auto', got 'low'."),
        ((0.1, -1), "SimATTA: high_entropy_bound must be at least 0, got -1."),
        ((float("nan"), 0.1), "SimATTA: low_entropy_bound must be a number, got nan."),
    ],
)
def test_bad_bounds_are_named(bounds, message):
    with pytest.raises(SettingError, match=message):
        EntropyBounds(*bounds)


def test_fitted_bounds_never_cross():
    bounds = EntropyBounds()

    bounds.observe([3.0] * 100, class_count=200)
    bounds.observe_source([2.5] * 100)

    assert bounds.low <= bounds.high == pytest.approx(0.05 * math.log(200))


def test_a_high_bound_set_by_hand_does_not_limit_the_fitted_low_one():
    bounds = EntropyBounds("auto", 0.0)

    bounds.observe_source([2.5] * 100)

    assert bounds.low == pytest.approx(2.5)
