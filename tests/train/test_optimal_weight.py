import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.optimize import minimize_scalar

from attakit.errors import SettingError
from attakit.train.optimal_weight import optimal_low_weight, target_bound

shares = some.floats(0.001, 0.999)
sizes = some.floats(0.0, 10.0)


@given(low_share=shares, divergence=sizes, gap=some.floats(0.001, 10.0))
def test_the_optimal_weight_agrees_with_a_numerical_minimiser(low_share, divergence, gap):
    def bound(weight):
        return float(target_bound(weight, low_share, divergence, gap))

    numerical = minimize_scalar(bound, bounds=(0, 1), method="bounded", options={"xatol": 1e-10})
    weight = float(optimal_low_weight(low_share, divergence, gap))

    assert 0 <= weight <= low_share
    assert bound(weight) <= numerical.fun + 1e-9 * (1 + abs(numerical.fun))
    assert weight == pytest.approx(numerical.x, abs=2e-3)


@given(low_share=shares, divergence=sizes, gap=sizes)
def test_the_bound_is_the_one_of_the_paper_before_simplification(low_share, divergence, gap):
    for weight in (0.0, 0.3, 1.0):
        root = np.sqrt(weight**2 / low_share + (1 - weight) ** 2 / (1 - low_share))

        expected = weight * divergence + root * gap

        assert float(target_bound(weight, low_share, divergence, gap)) == pytest.approx(expected)


def test_the_optimal_weight_of_a_case_worked_by_hand():
    # v = 0.2 · 0.8 = 0.16, B² − A²v = 4 − 0.16 = 3.84, w = 0.2 − 0.16 / √3.84
    assert float(optimal_low_weight(0.2, 1.0, 2.0)) == pytest.approx(0.2 - 0.16 / 3.84**0.5)


@pytest.mark.parametrize(
    ("low_share", "divergence", "gap", "weight"),
    [
        (0.3, 0.0, 1.0, 0.3),
        (0.3, 0.0, 0.0, 0.3),
        (0.3, 1.0, 0.0, 0.0),
        (0.5, 2.0, 1.0, 0.0),
        (0.5, 100.0, 1.0, 0.0),
        (0.5, 1.0, 1e9, 0.5),
        (0.5, 1e-200, 1e-200, 0.2113),
        (0.5, 1e200, 1e200, 0.2113),
        (0.0, 1.0, 1.0, 0.0),
        (1.0, 1.0, 1.0, 1.0),
        (1.0, 1.0, 0.0, 1.0),
    ],
)
def test_the_optimal_weight_at_the_edges(low_share, divergence, gap, weight):
    assert float(optimal_low_weight(low_share, divergence, gap)) == pytest.approx(weight, abs=1e-4)


def test_both_functions_broadcast():
    shares = np.array([[0.2], [0.8]])
    divergences = np.array([0.0, 0.5, 1.0])

    weights = optimal_low_weight(shares, divergences, 1.0)
    bounds = target_bound(weights, shares, divergences, 1.0)

    assert weights.shape == bounds.shape == (2, 3)
    assert weights[1, 2] == float(optimal_low_weight(0.8, 1.0, 1.0))
    assert np.all(np.diff(weights, axis=1) < 0)


@pytest.mark.parametrize(("weight", "share"), [(0.5, 0.0), (0.5, 1.0)])
def test_weight_on_a_set_without_samples_makes_the_bound_infinite(weight, share):
    assert float(target_bound(weight, share, 1.0, 1.0)) == np.inf


def test_no_weight_on_a_set_without_samples_leaves_the_bound_finite():
    assert float(target_bound(0.0, 0.0, 1.0, 2.0)) == 2.0
    assert float(target_bound(1.0, 1.0, 1.0, 2.0)) == 3.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.5, 1, 1), "low_share must be between 0 and 1, got 1.5"),
        ((float("nan"), 1, 1), "low_share must be between 0 and 1, got nan"),
        (([0.5, -0.1], 1, 1), "low_share must be between 0 and 1"),
        ((0.5, -1, 1), "divergence must be finite and at least 0, got -1"),
        ((0.5, 1, float("inf")), "gap must be finite and at least 0, got inf"),
        ((0.5, "much", 1), "divergence must be numbers, got 'much'"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments, message):
    with pytest.raises(SettingError, match=message):
        optimal_low_weight(*arguments)


def test_a_low_weight_above_one_is_refused():
    with pytest.raises(SettingError, match="low_weight must be between 0 and 1"):
        target_bound(1.1, 0.5, 1, 1)
