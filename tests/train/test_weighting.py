import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import SettingError
from attakit.train.optimal_weight import optimal_low_weight
from attakit.train.weighting import Weighting, low_share


def test_share_of_three_low_and_one_high_anchor_is_three_quarters():
    assert low_share(3, 1) == 0.75
    assert Weighting(cold_start_size=0).low_weight(3, 1) == 0.75


def test_share_is_zero_without_low_anchors():
    assert low_share(0, 5) == 0.0


def test_fixed_weight_does_not_depend_on_counts():
    weighting = Weighting(rule=0.4, cold_start_size=0)

    assert weighting.low_weight(1, 99) == weighting.low_weight(99, 1) == 0.4


def test_optimal_rule_is_the_minimiser_of_the_bound():
    weighting = Weighting(rule="optimal", divergence=0.3, complexity=50.0)

    expected = optimal_low_weight(0.75, 0.3, (50.0 / 400) ** 0.5)
    assert weighting.low_weight(300, 100) == pytest.approx(float(expected))
    assert weighting.low_weight(300, 100) < 0.75


def test_cold_start_caps_the_labelled_share_while_source_like_anchors_are_few():
    weighting = Weighting(cold_start_size=100, cold_start_high_share=0.2)

    assert weighting.low_weight(10, 10) == 0.8
    assert weighting.low_weight(99, 1) == 0.99
    assert weighting.low_weight(100, 100) == 0.5


def test_without_cold_start_the_share_counts_from_the_first_anchor():
    assert Weighting(cold_start_size=0).low_weight(10, 10) == 0.5


@given(
    st.integers(0, 5000),
    st.integers(1, 5000),
    st.one_of(st.sampled_from(["share", "optimal"]), st.floats(0, 1)),
    st.integers(0, 200),
)
def test_weight_is_always_a_share(low, high, rule, cold_start_size):
    weight = Weighting(rule=rule, cold_start_size=cold_start_size).low_weight(low, high)

    assert 0 <= weight <= 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rule": "best"}, "rule must be 'share', 'optimal' or a number from 0 to 1, got 'best'"),
        ({"rule": 1.5}, "rule must be at least 0 and at most 1, got 1.5"),
        ({"divergence": -1}, "divergence must be at least 0"),
        ({"complexity": 0}, "complexity must be greater than 0"),
        ({"cold_start_size": -1}, "cold_start_size must be at least 0"),
        ({"cold_start_high_share": 2}, "cold_start_high_share must be at least 0 and at most 1"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        Weighting(**settings)
