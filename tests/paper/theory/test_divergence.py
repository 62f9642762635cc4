import math

import numpy as np
import pytest

from attakit.errors import SettingError
from attakit.paper.theory import estimate_divergence

KINDS = ("linear", "network")


def normal(rows, columns, seed, shift=0.0):
    sample = np.random.default_rng(seed).normal(size=(rows, columns))
    sample[:, 0] += shift
    return sample


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_one_distribution_have_zero_in_their_interval(kind):
    found = estimate_divergence(normal(150, 8, 1), normal(150, 8, 2), hypotheses=kind)

    assert found.low == 0.0
    assert found.value < 0.3


def test_zero_lies_in_nearly_all_intervals_of_equal_distributions():
    intervals = [
        estimate_divergence(normal(60, 4, seed), normal(60, 4, 1000 + seed), folds=2)
        for seed in range(25)
    ]

    assert sum(found.low == 0.0 for found in intervals) >= 23


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_has_no_distance_to_itself(kind):
    sample = normal(80, 6, 1)

    found = estimate_divergence(sample, sample, hypotheses=kind)

    assert found.low == 0.0
    assert found.value <= 0.2


@pytest.mark.parametrize("kind", KINDS)
def test_disjoint_samples_are_as_far_apart_as_can_be(kind):
    found = estimate_divergence(normal(100, 5, 1), normal(100, 5, 2, 12), hypotheses=kind)

    assert found.value > 1.95
    assert 1.7 < found.low <= found.value <= found.high == 2.0


def test_the_known_distance_of_two_normals_lies_in_the_interval():
    known = 2 * math.erf(1 / (2 * math.sqrt(2)))

    found = estimate_divergence(normal(900, 3, 1), normal(900, 3, 2, 1.0))

    assert found.low <= known <= found.high


def test_a_network_sees_what_no_line_can():
    random = np.random.default_rng(0)
    inner, outer = random.normal(size=(300, 2)), random.normal(size=(300, 2))
    outer *= 5 / np.linalg.norm(outer, axis=1, keepdims=True)

    assert estimate_divergence(inner, outer).value < 0.3
    assert estimate_divergence(inner, outer, hypotheses="network").value > 1.5


def test_sides_of_different_sizes_count_the_same():
    found = estimate_divergence(normal(600, 4, 1), normal(40, 4, 2))

    assert found.low == 0.0
    assert found.samples == (600, 40)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_estimate(kind):
    first, second = normal(60, 4, 1), normal(60, 4, 2, 0.7)

    runs = [estimate_divergence(first, second, hypotheses=kind, seed=seed) for seed in (3, 3, 4)]

    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_nothing_is_taken_from_global_randomness():
    np.random.seed(5)
    before = np.random.get_state()[1].copy()

    estimate_divergence(normal(30, 3, 1), normal(30, 3, 2), hypotheses="network")

    assert np.array_equal(before, np.random.get_state()[1])


def test_large_samples_are_thinned():
    found = estimate_divergence(normal(500, 2, 1), normal(500, 2, 2), max_samples=100)

    assert found.samples == (100, 100)


def test_more_confidence_makes_a_wider_interval():
    first, second = normal(100, 2, 1), normal(100, 2, 2, 1.0)
    narrow = estimate_divergence(first, second, confidence=0.5)
    wide = estimate_divergence(first, second, confidence=0.99)

    assert wide.low < narrow.low < narrow.value == wide.value < narrow.high < wide.high


def test_two_samples_of_each_side_are_enough():
    found = estimate_divergence([[0.0], [0.1]], [[9.0], [9.1]])

    assert found.value == 2.0
    assert found.low < 1.0


def test_constant_features_tell_nothing():
    assert estimate_divergence(np.ones((20, 3)), np.ones((20, 3))).value == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": [[1.0]]}, "first must be at least 2 rows of features, got shape"),
        ({"second": [1.0, 2.0]}, "second must be at least 2 rows of features, got shape"),
        ({"second": np.ones((4, 3))}, "same features, got 2 and 3 dimensions"),
        ({"first": [[np.nan, 1.0], [0.0, 1.0]]}, "first features must be finite"),
        ({"hypotheses": "tree"}, "hypotheses must be one of linear, network"),
        ({"folds": 1}, "folds must be at least 2"),
        ({"confidence": 1.0}, "confidence must be below 1"),
        ({"max_samples": 1}, "max_samples must be at least 2"),
    ],
)
def test_what_cannot_be_compared_is_refused(change, message):
    with pytest.raises(SettingError, match=message):
        estimate_divergence(**({"first": np.ones((4, 2)), "second": np.ones((4, 2))} | change))
