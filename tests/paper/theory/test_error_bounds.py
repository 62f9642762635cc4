import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from attakit.errors import SettingError
from attakit.paper.theory import (
    divergence_slack,
    divergence_term,
    domain_bound,
    empirical_margin,
    gain_from_labels,
    gain_from_source_like,
    gap_term,
    optimal_low_weight,
    source_bound,
    target_bound,
    two_set_source_bound,
    weighted_error_margin,
)

SIZES = {"samples": 400, "unlabelled": 900, "dimension": 4, "delta": 0.05}
NO_SAMPLES = {name: value for name, value in SIZES.items() if name != "samples"}
NO_UNLABELLED = {name: value for name, value in SIZES.items() if name != "unlabelled"}

shares = some.floats(0.001, 0.999)
distances = some.floats(0.0, 2.0)
sizes = some.fixed_dictionaries(
    {
        "samples": some.integers(1, 10**6),
        "unlabelled": some.integers(1, 10**6),
        "dimension": some.integers(1, 1000),
        "delta": some.floats(0.001, 0.999),
    }
)


def terms(distance, given_sizes, joint=0.0):
    """A and B for an estimated distance."""
    rest = {name: value for name, value in given_sizes.items() if name != "samples"}
    gap = gap_term(given_sizes["samples"], given_sizes["dimension"], given_sizes["delta"])
    return float(divergence_term(distance, **rest, joint=joint)), float(gap)


@given(low_share=shares, distance=distances, joint=distances, given_sizes=sizes)
def test_labels_lower_the_bound_on_the_target_as_theorem_2_says(
    low_share, distance, joint, given_sizes
):
    apart, gap = terms(distance, given_sizes, joint)
    best = optimal_low_weight(low_share, apart, gap)

    at_share = gain_from_labels(low_share, low_share, apart, gap)
    at_best = gain_from_labels(best, low_share, apart, gap)

    assert at_share == pytest.approx((1 - low_share) * apart)
    assert at_share > 0
    assert at_best >= at_share - 1e-9 * (apart + gap)


@given(low_share=shares, near=distances, far=distances, joint=distances, given_sizes=sizes)
def test_source_like_samples_lower_the_bound_on_the_source_as_corollary_4_says(
    low_share, near, far, joint, given_sizes
):
    near, far = min(near, far), max(near, far)
    (low, gap), (target, _) = terms(near, given_sizes, joint), terms(far, given_sizes, joint)

    gain = float(gain_from_source_like(low_share, low_share, low, target, gap))

    assert gain == pytest.approx(low_share * (far - near), abs=1e-9 * (1 + gap + target))
    if far - near > 1e-3:
        assert gain > 0


@given(low_share=shares, apart=some.floats(0.01, 10), gap=some.floats(0.01, 10))
def test_the_best_weight_is_zero_below_the_corrected_condition_only(low_share, apart, gap):
    least_share = 1 - (gap / apart) ** 2

    weight = float(optimal_low_weight(low_share, apart, gap))

    if low_share > least_share + 1e-9:
        assert weight > 0
    elif low_share < least_share - 1e-9:
        assert weight == 0


def test_source_like_samples_that_are_farther_than_the_target_raise_the_bound():
    assert gain_from_source_like(0.5, 0.5, 1.0, 0.2, 1.0) < 0


def test_nearer_source_like_samples_with_a_larger_joint_error_may_raise_the_bound():
    near, gap = terms(0.2, SIZES, joint=0.9)
    far, _ = terms(0.4, SIZES, joint=0.0)

    assert gain_from_source_like(0.5, 0.5, near, far, gap) < 0


def test_the_past_bound_of_a_case_written_out():
    weights, parts, apart, joint = [0.5, 0.2, 0.3], [0.6, 0.3, 0.1], [0.8, 0.0, 0.4], [0.1, 0, 0.2]
    slack = 4 * np.sqrt((2 * 4 * np.log(1800) + np.log(40)) / 900)
    total = np.sqrt(0.25 / 0.6 + 0.04 / 0.3 + 0.09 / 0.1)
    gap = total * np.sqrt((4 * np.log(800) - np.log(0.05)) / 800)

    bound = domain_bound(weights, parts, apart, domain=1, joint=joint, best_error=0.02, **SIZES)

    shift = 0.5 * (0.4 + slack / 2 + 0.1) + 0.3 * (0.2 + slack / 2 + 0.2)
    assert float(bound) == pytest.approx(0.02 + 2 * shift + 2 * gap)


def test_the_future_bound_of_a_case_written_out():
    weights, apart = [0.5, 0.2, 0.3], [0.8, 0.0, 0.4]
    slack = float(divergence_slack(900, 4, 0.05))

    bound = domain_bound(weights, weights, apart, nearest_distance=0.3, joint=0.1, **SIZES)

    each = np.array(apart) + slack + 0.3 + 0.2
    gap = float(empirical_margin(weights, weights, **NO_UNLABELLED))
    assert float(bound) == pytest.approx(np.dot(weights, each) + 2 * gap)


def test_two_domains_give_equation_4_3():
    weights, parts = [0.3, 0.7], [0.4, 0.6]
    apart, gap = terms(0.8, SIZES, joint=0.1)

    target = domain_bound(weights, parts, [0.8, 0.0], domain=1, joint=[0.1, 0], **SIZES)
    source = domain_bound(weights, parts, [0.0, 0.8], domain=0, joint=[0, 0.1], **SIZES)

    assert float(target) == pytest.approx(float(target_bound(0.3, 0.4, apart, gap)))
    assert float(source) == pytest.approx(float(source_bound(0.3, 0.4, apart, gap)))


def test_two_sets_give_corollary_3():
    (low, gap), (target, _) = terms(0.1, SIZES, joint=0.05), terms(0.9, SIZES, joint=0.2)

    whole = domain_bound([0.3, 0.7], [0.4, 0.6], [0.1, 0.9], joint=[0.05, 0.2], **SIZES)

    assert float(whole) == pytest.approx(float(two_set_source_bound(0.3, 0.4, low, target, gap)))


def test_a_bound_is_lemma_6_twice_and_the_margin_twice():
    weights, parts, apart = [0.3, 0.7], [0.4, 0.6], [0.8, 0.0]

    shift = weighted_error_margin(weights, apart, domain=1, **NO_SAMPLES)
    gap = empirical_margin(weights, parts, **NO_UNLABELLED)

    bound = domain_bound(weights, parts, apart, domain=1, **SIZES)
    assert float(bound) == pytest.approx(2 * float(shift) + 2 * float(gap))


def test_the_proved_bound_shares_the_risk_among_its_events():
    weights, apart = [0.2, 0.3, 0.5], [0.8, 0.0, 0.4]
    risk = SIZES | {"delta": 0.05 / 3}  # two distances and the empirical error
    slack = float(divergence_slack(900, 4, risk["delta"], form="proved"))
    gap = gap_term(400, 4, risk["delta"], form="proved")

    bound = domain_bound(weights, weights, apart, domain=1, form="proved", **SIZES)

    assert float(bound) == pytest.approx(0.2 * (0.8 + slack) + 0.5 * (0.4 + slack) + float(gap))


@settings(max_examples=30)
@given(apart=distances, given_sizes=sizes, low_share=shares)
def test_the_proved_bounds_are_above_the_printed_ones(apart, given_sizes, low_share):
    weights = [low_share, 1 - low_share]

    for domain in (None, 0):
        case = {"domain": domain, **given_sizes}
        printed = domain_bound(weights, weights, [apart, apart], **case)
        assert domain_bound(weights, weights, [apart, apart], form="proved", **case) > printed


def test_with_endless_samples_only_distance_and_joint_error_are_left():
    endless = {"samples": 1e15, "unlabelled": 1e15, "dimension": 4, "delta": 0.05}

    bound = domain_bound(
        [0.3, 0.7], [0.3, 0.7], [0.8, 0.0], domain=1, joint=0.1, best_error=0.05, **endless
    )

    assert float(bound) == pytest.approx(0.05 + 0.3 * (0.8 + 0.2), abs=1e-5)


def test_bounds_broadcast_over_steps_and_sizes():
    weights = np.array([[0.2, 0.8], [0.5, 0.5], [0.8, 0.2]])
    counts = np.array([100, 200, 300])

    together = domain_bound(
        weights,
        weights,
        [0.5, 0.0],
        domain=1,
        **(SIZES | {"samples": counts, "unlabelled": counts}),
    )

    for row, count, bound in zip(weights, counts, together, strict=True):
        alone = domain_bound(
            row, row, [0.5, 0.0], domain=1, **(SIZES | {"samples": count, "unlabelled": count})
        )
        assert bound == pytest.approx(float(alone))


def test_farther_domains_raise_the_bound():
    apart = np.array([[0.0, 0.0], [0.5, 0.0], [2.0, 0.0]])

    bounds = domain_bound([0.3, 0.7], [0.3, 0.7], apart, domain=1, **SIZES)

    assert np.all(np.diff(bounds) > 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"domain": 2}, "domain must be at least 0 and at most 1, got 2"),
        ({"distances": [0.5]}, "distances must hold one per domain, got shape"),
        ({"distances": [0.5, 2.5]}, "distances must be between 0 and 2"),
        ({"shares": [1.0, 0.0]}, "without samples cannot have a weight"),
        ({"best_error": 1.5}, "best_error must be between 0 and 1"),
        ({"delta": 1.0}, "delta must be greater than 0 and less than 1"),
        ({"form": "printed"}, "form must be one of paper, proved"),
    ],
)
def test_what_makes_no_sense_is_refused(change, message):
    arguments = {"weights": [0.3, 0.7], "shares": [0.3, 0.7], "distances": [0.8, 0], "domain": 1}

    with pytest.raises(SettingError, match=message):
        domain_bound(**(arguments | SIZES | change))
