from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from attakit.errors import ModelError
from attakit.records import Rows
from attakit.select import IncrementalClustering
from given_clusters import Given, rows


def given_clusters(*labels):
    selector = IncrementalClustering()
    selector.clustering = Given(*labels)
    return selector


def test_three_steps_in_the_plane_as_worked_by_hand():
    selector = IncrementalClustering(initial_clusters=2, cluster_growth=1)

    # Two clusters: five points around b, and f alone.
    six = rows(a=(0, 0), b=(1, 0), c=(2, 0), d=(1, 1), e=(1, -1), f=(10, 0))
    first = selector.select(six, rows(), limit=10, step=0)

    assert first.samples == ("b", "f")
    assert first.weights == {"b": 5, "f": 1}

    # Three clusters: b absorbs g and h, f absorbs i, and j, k, l are new.
    known = rows([5.0, 1.0], b=(1, 0), f=(10, 0))
    six = rows(g=(0, 0), h=(2, 0), i=(10, 1), j=(0, 20), k=(1, 20), l=(2, 20))
    second = selector.select(six, known, limit=10, step=1)

    assert second.samples == ("k",)
    assert second.weights == {"b": 7, "f": 2, "k": 3}

    # Four clusters for five groups: the nearest two old ones merge and share the one sample m.
    known = rows([7.0, 2.0, 3.0], b=(1, 0), f=(10, 0), k=(1, 20))
    five = rows(m=(9, 0), n=(100, 100), o=(101, 100), p=(102, 100), q=(100, -100))
    third = selector.select(five, known, limit=10, step=2)

    assert third.samples == ("o", "q")
    assert third.weights == {"b": 7.5, "f": 2.5, "o": 3, "q": 1}
    assert third.clusters["b"] == third.clusters["f"] == third.clusters["m"]
    assert len(set(third.clusters.values())) == 4


def test_the_weights_of_known_samples_steer_the_clusters():
    # b joins z while z is light, at a cost of 6.76 · 0.1 / 1.1; a heavy z is left alone, since
    # a and b together cost 2.88 and b with z would cost 6.76.
    candidates = rows(a=(0, 0), b=(0, 2.4))
    light, heavy = rows([0.1], z=(0, 5)), rows([1000.0], z=(0, 5))
    selector = IncrementalClustering(initial_clusters=2, cluster_growth=1)

    with_light = selector.select(candidates, light, limit=5, step=0)
    with_heavy = selector.select(candidates, heavy, limit=5, step=0)

    assert with_light.samples == ("a",)
    assert with_light.weights == {"z": pytest.approx(1.1), "a": 1}
    assert with_heavy.clusters["a"] == with_heavy.clusters["b"] != with_heavy.clusters["z"]
    assert list(with_heavy.weights.values()) == [2]


# A new cluster of two (x, y) whose centroid (0, 0) lies nearest to z, which is in another cluster.
astride = {"x": (-10, 0), "y": (11, 0), "w": (0, 3)}


def test_the_nearest_member_is_asked_whatever_lies_nearer():
    selector = given_clusters(1, 0, 0, 1)

    selection = selector.select(rows(**astride), rows(z=(0, 2)), limit=5, step=0)

    assert selection.samples == ("x",)
    assert selection.weights == {"z": 2, "x": 2}


def test_a_small_limit_takes_the_heaviest_clusters_first():
    candidates = rows(a=(0, 0), b=(50, 0), c=(51, 0), d=(52, 0), e=(0, 50), f=(0, 51.5))
    selector = IncrementalClustering(initial_clusters=3, cluster_growth=1)

    everything = selector.select(candidates, rows(), limit=3, step=0)
    two = selector.select(candidates, rows(), limit=2, step=0)

    assert everything.samples[0] == "c"
    assert everything.samples[2] == "a"
    assert two.samples == everything.samples[:2]
    assert sorted(two.weights.values()) == [2, 3]


@pytest.mark.parametrize("limit", [0, -1])
def test_without_any_question_allowed_known_samples_still_absorb_their_neighbours(limit):
    candidates = rows(a=(1, 0), b=(90, 90))
    selector = IncrementalClustering(initial_clusters=2, cluster_growth=1)

    selection = selector.select(candidates, rows(z=(0, 0)), limit=limit, step=0)

    assert selection.samples == ()
    assert selection.weights == {"z": 2}


def test_a_candidate_that_is_known_already_is_not_asked_again():
    # The two views of "a" lie apart, so its cluster looks new.
    selector = given_clusters(0, 1, 1, 1)
    candidates = rows(a=(5, 0), b=(9, 0), c=(2, 0))

    selection = selector.select(candidates, rows(a=(0, 0)), limit=5, step=0)

    assert set(selection.samples) <= {"b", "c"}
    assert len(selection.samples) == 1


def test_a_new_cluster_of_known_names_alone_is_passed_over():
    selector = given_clusters(0, 1)

    selection = selector.select(rows(a=(9, 9)), rows(a=(0, 0)), limit=5, step=0)

    assert selection.samples == ()


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("known_count", [0, 1, 2])
def test_tiny_and_identical_inputs_never_fail(count, known_count):
    candidates = rows(**{f"new{number}": (1, 1) for number in range(count)})
    known = rows(**{f"known{number}": (1, 1) for number in range(known_count)})
    selector = IncrementalClustering()

    selection = selector.select(candidates, known, limit=5, step=3)

    assert len(selection.samples) == (1 if count and not known_count else 0)


def test_known_rows_without_a_width_are_accepted_when_there_are_none():
    nothing = Rows((), torch.zeros(0, 0), torch.zeros(0, 0), torch.zeros(0))

    selection = IncrementalClustering().select(rows(a=(1, 2)), nothing, limit=1, step=0)

    assert selection.samples == ("a",)


def test_half_precision_features_and_features_with_gradients_are_accepted():
    candidates = rows(a=(0, 0), b=(1, 0), c=(2, 0), d=(90, 0))
    half = replace(candidates, features=candidates.features.bfloat16().requires_grad_())
    selector = IncrementalClustering(initial_clusters=2, cluster_growth=1)

    selection = selector.select(half, rows(), limit=5, step=0)

    assert selection.samples == ("b", "d")


def test_features_that_are_not_finite_are_refused():
    with pytest.raises(ModelError, match="features must be finite"):
        IncrementalClustering().select(rows(a=(float("nan"), 0)), rows(), limit=1, step=0)


cells = some.lists(some.tuples(some.integers(-4, 4), some.integers(-4, 4)), max_size=12)


@settings(max_examples=60)
@given(
    new=cells,
    old=cells,
    masses=some.lists(some.integers(0, 9), min_size=12, max_size=12),
    clusters=some.integers(1, 8),
    step=some.integers(0, 5),
    limit=some.integers(0, 4),
)
def test_choices_are_candidates_within_the_limit_and_weight_is_conserved(
    new, old, masses, clusters, step, limit
):
    candidates = rows(**{f"new{number}": cell for number, cell in enumerate(new)})
    weights = [float(mass) for mass in masses[: len(old)]]
    known = rows(weights, **{f"old{number}": cell for number, cell in enumerate(old)})
    selector = IncrementalClustering(initial_clusters=clusters, cluster_growth=1, inits=1)

    limited = selector.select(candidates, known, limit, step)
    everything = selector.select(candidates, known, 1000, step)

    assert limited.samples == everything.samples[:limit]
    assert set(everything.samples) <= set(candidates.samples)
    after = dict(zip(known.samples, weights, strict=True)) | dict(everything.weights)
    assert sum(after.values()) == pytest.approx(sum(weights) + len(new))


@settings(max_examples=60)
@given(new=cells, old=cells, limit=some.integers(0, 6), step=some.integers(0, 5))
def test_without_growth_as_many_are_asked_as_are_due(new, old, limit, step):
    candidates = rows(**{f"new{number}": cell for number, cell in enumerate(new)})
    known = rows(**{f"old{number}": cell for number, cell in enumerate(old)})

    selection = IncrementalClustering(inits=1).select(candidates, known, limit, step)

    unlike = len(set(new) - set(old))
    assert min(limit, unlike) <= len(selection.samples) <= limit


def test_without_growth_a_question_goes_to_the_group_that_is_not_covered():
    candidates = rows(a=(0, 1), b=(1, 0), c=(50, 0), d=(51, 0), e=(52, 0))

    selection = IncrementalClustering().select(candidates, rows(z=(0, 0)), limit=1, step=9)

    assert selection.samples == ("d",)
    assert selection.weights == {"z": 3, "d": 3}


@pytest.mark.parametrize("error", [-1e-5, 0.0, 1e-5])
def test_of_two_members_the_earlier_one_is_asked_however_rounding_falls(error):
    # Both are 1 from their mean; the error moves the centroid towards one of them.
    pair = rows(first=(9.0, 5.0 + error), second=(11.0 + error, 5.0))
    selector = given_clusters(0, 0)
    assert selector.select(pair, rows(), limit=1, step=0).samples == ("first",)


def test_of_several_equal_samples_the_first_is_asked():
    same = rows(a=(0.1, 0.7), b=(0.1, 0.7), c=(0.1, 0.7))
    assert given_clusters(0, 0, 0).select(same, rows(), limit=1, step=0).samples == ("a",)
