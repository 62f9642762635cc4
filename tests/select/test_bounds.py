import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import SettingError
from attakit.select.bounds import AGREEMENT, MEMORY, EntropyBounds

judgements = st.lists(
    st.tuples(st.floats(1e-6, 2.0), st.booleans()), min_size=1, max_size=3 * MEMORY
)


def test_numbers_stay_as_they_are():
    bounds = EntropyBounds(1e-3, 1e-2)

    bounds.observe([1.0, 2.0], class_count=10)
    bounds.judge([1e-5], [True])

    assert (bounds.low, bounds.high) == (1e-3, 1e-2)


def test_nothing_is_trusted_before_anything_was_judged():
    assert EntropyBounds("auto", "auto").low == 0.0


def test_low_bound_ends_where_agreement_falls_below_its_share():
    bounds = EntropyBounds("auto")

    # 40 sure samples agree; of the next ones none does: 40 / 41 ≥ 0.97 > 40 / 42.
    entropies = [0.001 * number for number in range(1, 51)]
    bounds.judge(entropies, [number <= 40 for number in range(1, 51)])

    assert bounds.low == pytest.approx(0.042)


def test_low_bound_is_zero_when_the_surest_samples_disagree():
    bounds = EntropyBounds("auto")

    bounds.judge([0.001, 0.1], [False, True])

    assert bounds.low == 0.0


def test_low_bound_forgets_an_earlier_domain():
    bounds = EntropyBounds("auto")
    bounds.judge([0.5] * MEMORY, [True] * MEMORY)
    assert bounds.low == 0.5

    bounds.judge([0.4] * MEMORY, [False] * MEMORY)

    assert bounds.low == 0.0


@given(judgements)
def test_nearly_all_recent_samples_below_the_low_bound_agree(judged):
    bounds = EntropyBounds("auto")
    bounds.judge([entropy for entropy, _ in judged], [agreed for _, agreed in judged])

    below = [agreed for entropy, agreed in judged[-MEMORY:] if entropy < bounds.low]
    assert not below or sum(below) / len(below) >= AGREEMENT


def test_the_surest_tenth_is_taken_at_once():
    bounds = EntropyBounds("auto")

    bounds.observe_source([0.001 * number for number in range(1, 101)])

    assert sum(0.001 * number < bounds.low_at_once for number in range(1, 101)) == 10


def test_a_fixed_low_bound_is_applied_at_once():
    bounds = EntropyBounds(1e-3, 1e-2)

    bounds.observe_source([1e-9] * 50)

    assert bounds.low_at_once == 1e-3


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


@given(judgements)
def test_saved_bounds_go_on_as_if_never_stopped(judged):
    half = len(judged) // 2
    one, other = EntropyBounds(), EntropyBounds()
    entropies, agreed = [e for e, _ in judged], [a for _, a in judged]
    one.judge(entropies[:half], agreed[:half])
    one.observe(entropies[:half], 3)
    one.observe_source(entropies[:half])

    other.load_state_dict(one.state_dict())
    for bounds in (one, other):
        bounds.judge(entropies[half:], agreed[half:])
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
