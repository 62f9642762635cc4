"""Bounds that hold at every look: by hand, and on random data."""

import math
from itertools import pairwise

import numpy as np
import pytest

from attakit.service.learner.sequences import (
    count_needed,
    estimate,
    log_dependence,
    log_e_value,
    log_threshold,
    lower_bound,
    paired_counts,
    paired_difference,
    upper_bound,
)

REPEATS, LOOKS = 300, 60


def test_money_against_a_fair_coin_is_the_mean_over_all_bets():
    # A bet of b wins the stake: the money is (1 + b)^n, on average (2^(n+1) - 1) / (n + 1).
    assert math.exp(log_e_value({1: 5, 0: 0}, 0.5)) == pytest.approx((2**6 - 1) / 6, rel=0.01)
    # A loss takes the stake: of (1 - b)^n the average is 1 / (n + 1).
    assert math.exp(log_e_value({1: 0, 0: 5}, 0.5)) == pytest.approx(1 / 6, rel=0.02)


def test_a_mean_that_the_values_have_is_never_rejected():
    assert log_e_value({1: 50, 0: 50}, 0.5) < 0
    assert log_e_value({1: 10, -1: 10, 0: 80}, 0.0, lowest=-1) < 0


def test_the_price_of_a_value_is_its_worth_at_the_mean():
    # With -0.05 from -1 to 1, no change at all earns b / 19 of the money each time.
    bets = (np.arange(16) + 0.5) / 16
    expected = np.mean((1 + bets / 19) ** 45)

    assert math.exp(log_e_value({0: 45}, -0.05, lowest=-1)) == pytest.approx(expected)


def test_five_losses_in_a_row_and_no_gain_prove_that_a_model_is_worse():
    lost = paired_difference([0] * 5, [1] * 5, [0] * 5, confidence=0.9)
    too_few = paired_difference([0] * 4, [1] * 4, [0] * 4, confidence=0.9)

    assert lost.high < 0 < too_few.high


def test_the_paired_difference_counts_only_where_two_models_differ():
    labels = [0, 0, 0, 0, None]
    found = paired_difference(labels, [0, 0, 1, 1, 0], [0, 1, 0, 1, 1], confidence=0.9)

    assert paired_counts(labels, [0, 0, 1, 1, 0], [0, 1, 0, 1, 1]) == {1: 1, -1: 1, 0: 3}
    assert found.value == 0
    assert found.low == pytest.approx(-found.high)


def test_bounds_close_in_on_the_value():
    widths = []
    for count in (10, 40, 160, 640):
        found = estimate(right=count * 8 // 10, count=count, confidence=0.9)
        assert found.low < 0.8 < found.high
        widths.append(found.high - found.low)

    assert all(wide > 1.5 * narrow for wide, narrow in pairwise(widths))


def test_nothing_is_known_without_values():
    assert lower_bound({1: 0, 0: 0}, 0, 1, 0.9) == pytest.approx(0, abs=1e-5)
    assert upper_bound({1: 0, 0: 0}, 0, 1, 0.9) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("truth", [0.1, 0.5, 0.9])
def test_the_lower_bound_of_an_accuracy_is_hardly_ever_wrong_at_any_look(truth):
    random = np.random.default_rng(0)
    draws = random.random((REPEATS, LOOKS)) < truth
    missed = [ever_rejected(row.cumsum(), truth) for row in draws]

    assert np.mean(missed) <= 0.1


def ever_rejected(right, truth):
    looks = range(1, LOOKS + 1, 3)
    return any(
        log_e_value({1: right[n - 1], 0: n - right[n - 1]}, truth) >= log_threshold(0.9)
        for n in looks
    )


def test_an_interval_of_a_single_look_would_be_wrong_far_too_often():
    """Why sequences: Wald's bound of 90 % confidence, looked at after every answer."""
    random = np.random.default_rng(0)
    right = (random.random((REPEATS, LOOKS)) < 0.5).cumsum(axis=1)
    counts = np.arange(1, LOOKS + 1)
    share = right / counts
    bound = share - 1.2816 * np.sqrt(share * (1 - share) / counts)

    assert np.mean((bound > 0.5).any(axis=1)) > 0.3


@pytest.mark.parametrize("classes", [2, 10])
@pytest.mark.parametrize("uneven", [False, True])
def test_labels_without_any_relation_to_guesses_hardly_ever_prove_one(classes, uneven):
    random = np.random.default_rng(1)
    chances = np.ones(classes) / classes
    if uneven:
        chances = np.r_[0.9, np.full(classes - 1, 0.1 / (classes - 1))]
    proven = 0
    for _ in range(REPEATS):
        labels = random.choice(classes, size=30, p=chances).tolist()
        guesses = random.choice(classes, size=30, p=chances).tolist()
        looks = (log_dependence(guesses[:n], labels[:n], classes) for n in range(1, 31, 4))
        proven += max(looks) >= log_threshold(0.9)

    assert proven / REPEATS <= 0.1


def test_a_relation_shows_although_one_class_is_nearly_everywhere():
    labels = ([0] * 9 + [1]) * 4

    assert log_dependence(labels, labels, classes=2) > math.log(10)
    assert log_dependence([0] * 40, labels, classes=2) < 0


def test_two_answers_in_agreement_count_as_computed_by_hand():
    # At first half is put on the guess, half on three labels that are equally likely; then two
    # thirds, while label 0 was seen once. The best prediction without guesses is 1/2 each time.
    first = 1 / 2 + 1 / 2 * (0.5 / 1.5)
    second = 2 / 3 + 1 / 3 * (0.5 / 2.5)

    found = log_dependence([0, 1], [0, 1], classes=2)
    assert math.exp(found) == pytest.approx(first * second / (1 / 2) ** 2)


def test_how_many_values_are_needed_is_about_how_many_it_takes():
    total = count_needed({1: 6, 0: 4}, mean=0.5, lowest=0, confidence=0.9)

    assert log_e_value({1: 0.6 * total, 0: 0.4 * total}, 0.5) >= log_threshold(0.9)
    fewer = 0.95 * total
    assert log_e_value({1: 0.6 * fewer, 0: 0.4 * fewer}, 0.5) < log_threshold(0.9)
    assert count_needed({1: 5, 0: 5}, mean=0.5, lowest=0, confidence=0.9) is None
