import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from attakit.errors import SettingError
from attakit.paper.theory import (
    divergence_slack,
    divergence_tail,
    divergence_term,
    empirical_margin,
    gap_term,
    hoeffding_tail,
    joint_error,
    variance_factor,
    weighted_error_tail,
)

SIZES = {"samples": 500, "dimension": 3, "delta": 0.1}


@some.composite
def mixtures(draw):
    """Weights and shares of two to five domains; shares of at least one in a hundred."""
    count = draw(some.integers(2, 5))
    raw = [
        draw(some.lists(some.floats(low, 1), min_size=count, max_size=count)) for low in (0, 1e-2)
    ]
    weights, shares = np.array(raw[0]) + 1e-9, np.array(raw[1])
    return weights / weights.sum(), shares / shares.sum()


@given(mixture=mixtures())
def test_weights_equal_to_shares_make_the_error_most_reliable(mixture):
    weights, shares = mixture

    assert variance_factor(weights, shares) >= 1 - 1e-12
    assert variance_factor(shares, shares) == pytest.approx(1)
    assert empirical_margin(shares, shares, **SIZES) <= empirical_margin(
        weights, shares, **SIZES
    ) * (1 + 1e-12)


@given(mixture=mixtures(), step=some.floats(0.01, 0.99))
def test_the_margin_falls_all_the_way_from_any_weights_to_the_shares(mixture, step):
    weights, shares = mixture
    nearer = step * weights + (1 - step) * shares

    assert variance_factor(nearer, shares) <= variance_factor(weights, shares) + 1e-12


@pytest.mark.parametrize(("count", "dimension", "delta"), [(900, 4, 0.05), (10_000, 10, 0.3)])
def test_the_slack_is_the_margin_at_which_the_tail_is_delta(count, dimension, delta):
    slack = divergence_slack(count, dimension, delta)

    assert float(divergence_tail(slack, count, count, dimension)) == pytest.approx(delta)


def test_the_smaller_of_two_samples_decides_about_the_tail():
    few, many = divergence_tail(2.0, [900, 5_000], 5_000, dimension=2).tolist()

    # (2·900)⁴·exp(−900·4/16) is e^(29.98 − 225); the other side adds e^(36.84 − 1250).
    assert math.log(few) == pytest.approx(4 * math.log(1_800) - 225)
    assert many < few
    assert float(divergence_tail(0.0, 10, 10, dimension=1)) == 1.0


def test_terms_of_a_case_worked_by_hand():
    # log(2·50) = 4.60517, −log 0.1 = 2.30259, log(2/0.1) = 2.99573
    assert float(gap_term(50, 2, 0.1)) == pytest.approx(2 * ((9.21034 + 2.30259) / 100) ** 0.5)
    assert float(divergence_slack(50, 2, 0.1)) == pytest.approx(
        4 * ((18.42068 + 2.99573) / 50) ** 0.5
    )
    # Σ w²/λ = 0.25/0.8 + 0.25/0.2 = 1.5625, whose root is 1.25
    margin = empirical_margin([0.5, 0.5], [0.8, 0.2], samples=50, dimension=2, delta=0.1)
    assert float(margin) == pytest.approx(1.25 * float(gap_term(50, 2, 0.1)) / 2)


def test_the_divergence_term_adds_distance_slack_and_twice_the_joint_error():
    sizes = {"unlabelled": 100, "dimension": 3, "delta": 0.05}

    term = divergence_term(0.7, **sizes, joint=0.2)

    assert float(term) == pytest.approx(0.7 + float(divergence_slack(100, 3, 0.05)) + 0.4)


def test_the_proved_terms_are_larger_than_the_printed_ones():
    counts = np.array([1, 10, 1000, 10**6])
    for term in (gap_term, divergence_slack):
        assert np.all(term(counts, 5, 0.05, form="proved") > term(counts, 5, 0.05))


@pytest.mark.parametrize("form", ["paper", "proved"])
@pytest.mark.parametrize("term", [gap_term, divergence_slack])
def test_more_samples_fewer_hypotheses_and_more_risk_lower_a_term(term, form):
    many = term([10, 100, 1000, 10**9], 5, 0.05, form=form)
    rich = term(100, [1, 5, 50], 0.05, form=form)
    bold = term(100, 5, [0.5, 0.05, 0.005], form=form)

    assert np.all(np.diff(many) < 0)
    assert np.all(np.diff(rich) > 0)
    assert np.all(np.diff(bold) > 0)
    assert many[-1] < 0.01


def test_an_error_of_one_hypothesis_has_the_tail_of_hoeffding():
    widths = np.repeat([0.5 / 0.8, 0.5 / 0.2], [80, 20])

    assert float(weighted_error_tail(0.3, [0.5, 0.5], [0.8, 0.2], 100)) == pytest.approx(
        float(hoeffding_tail(0.3, widths))
    )


def test_the_tail_of_hoeffding_holds_for_coins():
    heads = np.random.default_rng(0).random((4000, 50)) < 0.5
    off = np.abs(heads.mean(axis=1) - 0.5)
    for margin in (0.1, 0.15, 0.2):
        assert np.mean(off >= margin) <= float(hoeffding_tail(margin, np.ones(50)))


def test_tails_at_the_edges():
    assert float(hoeffding_tail(0.0, [1.0])) == 1.0
    assert float(hoeffding_tail(0.1, [0.0])) == 0.0
    assert float(hoeffding_tail(10.0, np.ones(100))) == 0.0


def test_the_joint_error_is_of_the_hypothesis_that_is_best_for_both():
    errors = np.array([[0.0, 0.1, 0.5], [0.3, 0.3, 0.3]])

    assert joint_error(errors, [0.5, 0.2, 0.0]) == pytest.approx([0.3, 0.3])


def test_terms_broadcast():
    shares = np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])

    margins = empirical_margin(shares, shares, samples=[10, 100, 1000], dimension=2, delta=0.1)

    assert margins.shape == (3,)
    assert margins[1] == float(gap_term(100, 2, 0.1)) / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: variance_factor([0.5, 0.6], [0.5, 0.5]), "weights must add up to 1"),
        (lambda: variance_factor([0.5, 0.5], [0.2, 0.2]), "shares must add up to 1"),
        (lambda: variance_factor([1.5, -0.5], [0.5, 0.5]), "weights must be between 0 and 1"),
        (lambda: variance_factor(1.0, 1.0), "weights must hold a number per domain, got 1.0"),
        (lambda: variance_factor([1.0], [0.5, 0.5]), "the same number of domains, got 1 and 2"),
        (lambda: variance_factor([0.5, 0.5], [1.0, 0.0]), "without samples cannot have a weight"),
        (lambda: gap_term(0, 3, 0.1), "samples must be finite and at least 1, got 0"),
        (lambda: gap_term(10, 0.5, 0.1), "dimension must be finite and at least 1, got 0.5"),
        (lambda: gap_term(10, 3, 0.0), "delta must be greater than 0 and less than 1, got 0.0"),
        (lambda: gap_term(10, 3, [0.5, 1.0]), "delta must be greater than 0 and less than 1"),
        (lambda: gap_term(10, 3, 0.1, form="best"), "form must be one of paper, proved"),
        (lambda: divergence_slack(0.2, 3, 0.1), "unlabelled must be finite and at least 1"),
        (lambda: joint_error([0.1, 0.2], [0.1]), "of the same hypotheses"),
        (lambda: hoeffding_tail(0.1, 1.0), "a width per number"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(call, message):
    with pytest.raises(SettingError, match=message):
        call()


def test_a_domain_without_samples_and_without_weight_is_fine():
    assert float(variance_factor([1.0, 0.0], [1.0, 0.0])) == 1.0
