import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from attakit.errors import ModelError, SettingError
from attakit.methods.reference import ReferenceKMeans
from attakit.select import SklearnKMeans, small_kmeans
from attakit.select.kmeans import check_points, squared_distances
from attakit.select.small_kmeans import SmallKMeans

BACKENDS = [
    pytest.param(SklearnKMeans(), id="sklearn"),
    pytest.param(ReferenceKMeans(), id="reference"),
    pytest.param(SmallKMeans(), id="small"),
]
all_of_them = pytest.mark.parametrize("clustering", BACKENDS)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def separated(seed=0):
    centres = 40 * normal(6, 8, seed=seed)
    return (centres[:, None] + normal(6, 10, 8, seed=seed + 1)).reshape(60, 8)


def groups(labels):
    return {tuple(np.flatnonzero(labels == label)) for label in np.unique(labels)}


def weighted_objective(points, weights, found):
    squares = (points - found.centroids[found.labels]).square().sum(dim=1)
    return float((squares * weights).sum())


@all_of_them
def test_separated_groups_are_found(clustering):
    found = clustering.partition(separated(), torch.ones(60), count=6, seed=0)

    truth = np.repeat(np.arange(6), 10)
    assert groups(found.labels.numpy()) == groups(truth)


@all_of_them
def test_centroids_are_the_weighted_means_of_their_members(clustering):
    points, weights = normal(40, 3), 5 * normal(40, seed=1).abs()

    found = clustering.partition(points, weights, count=5, seed=0)

    for cluster, centroid in enumerate(found.centroids):
        members = found.labels == cluster
        mean = (points[members] * weights[members, None]).sum(dim=0) / weights[members].sum()
        assert torch.allclose(centroid, mean, atol=1e-5)


@all_of_them
def test_the_objective_is_what_it_says(clustering):
    points, weights = normal(40, 3), 5 * normal(40, seed=1).abs()

    found = clustering.partition(points, weights, count=5, seed=0)

    assert found.objective == pytest.approx(weighted_objective(points, weights, found), rel=1e-4)


@all_of_them
def test_a_seed_gives_the_same_clusters_without_global_randomness(clustering):
    points = normal(50, 4)
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()

    first = clustering.partition(points, torch.ones(50), count=8, seed=3)
    second = clustering.partition(points, torch.ones(50), count=8, seed=3)

    assert torch.equal(first.labels, second.labels)
    assert torch.equal(first.centroids, second.centroids)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)


@all_of_them
def test_a_heavy_point_pulls_its_centroid(clustering):
    points = torch.tensor([[0.0], [1.0]])

    found = clustering.partition(points, torch.tensor([3.0, 1.0]), count=1, seed=0)

    assert found.centroids.tolist() == [[0.25]]


@all_of_them
@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_there_are_never_more_clusters_than_distinct_points(clustering, distinct):
    points = normal(distinct, 2).repeat(4, 1)

    found = clustering.partition(points, torch.ones(len(points)), count=10, seed=0)

    assert len(found.centroids) == distinct
    assert sorted(found.labels.unique().tolist()) == list(range(distinct))


@all_of_them
def test_one_point_is_one_cluster(clustering):
    found = clustering.partition(torch.ones(1, 3), torch.ones(1), count=4, seed=0)

    assert found.labels.tolist() == [0]
    assert found.centroids.tolist() == [[1.0, 1.0, 1.0]]


@all_of_them
def test_points_without_weight_shape_no_cluster_and_join_the_nearest(clustering):
    points = torch.tensor([[0.0], [1.0], [10.0], [11.0], [30.0]])
    weights = torch.tensor([1.0, 1.0, 1.0, 1.0, 0.0])

    found = clustering.partition(points, weights, count=2, seed=0)

    assert sorted(found.centroids.flatten().tolist()) == [0.5, 10.5]
    assert found.labels[4] == found.labels[3]


@all_of_them
def test_weights_that_are_all_zero_count_alike(clustering):
    points = torch.tensor([[0.0], [1.0], [10.0], [11.0]])

    found = clustering.partition(points, torch.zeros(4), count=2, seed=0)

    assert sorted(found.centroids.flatten().tolist()) == [0.5, 10.5]


@all_of_them
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_clustering_happens_in_single_precision(clustering, dtype):
    found = clustering.partition(normal(9, 2).to(dtype), torch.ones(9), count=2, seed=0)

    assert found.centroids.dtype == torch.float32


@all_of_them
def test_points_that_need_gradients_are_accepted(clustering):
    points = normal(9, 2).requires_grad_()

    found = clustering.partition(points, torch.ones(9), count=2, seed=0)

    assert not found.centroids.requires_grad


@all_of_them
def test_points_too_close_for_their_squares_cause_no_complaint(clustering):
    points = torch.tensor([[0.0], [1e-30], [2e-30], [1.0]])

    found = clustering.partition(points, torch.ones(4), count=4, seed=0)

    assert found.labels[0] != found.labels[3]


@all_of_them
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_features_that_are_not_finite_are_refused(clustering, value):
    points = normal(5, 2)
    points[3, 1] = value

    with pytest.raises(ModelError, match=r"features must be finite, got .* in 1 of 5 rows"):
        clustering.partition(points, torch.ones(5), count=2, seed=0)


@pytest.mark.parametrize("weight", [-1.0, float("nan")])
def test_bad_weights_are_refused(weight):
    with pytest.raises(SettingError, match="weights must be finite and not negative"):
        check_points(normal(2, 2), torch.tensor([1.0, weight]), count=1)


def test_no_points_are_refused():
    with pytest.raises(SettingError, match="at least one point"):
        check_points(torch.zeros(0, 2), torch.zeros(0), count=1)


@all_of_them
@settings(max_examples=40)
@given(
    cells=some.lists(some.tuples(*[some.integers(-3, 3)] * 3), min_size=1, max_size=20),
    count=some.integers(1, 8),
)
def test_every_cluster_has_a_member_and_every_point_a_cluster(clustering, cells, count):
    points = torch.tensor([cell[:2] for cell in cells], dtype=torch.float32)
    weights = torch.tensor([float(abs(cell[2])) for cell in cells])

    found = clustering.partition(points, weights, count, seed=1)

    assert 1 <= len(found.centroids) <= count
    assert found.labels.unique().tolist() == list(range(len(found.centroids)))
    assert bool(found.centroids.isfinite().all())


@pytest.mark.parametrize("backend", [SklearnKMeans, ReferenceKMeans, SmallKMeans])
def test_more_starts_never_do_worse(backend):
    points = normal(120, 4)

    one = [backend(inits=1).partition(points, torch.ones(120), 15, s).objective for s in range(5)]
    ten = [backend(inits=10).partition(points, torch.ones(120), 15, s).objective for s in range(5)]

    assert np.mean(ten) < np.mean(one)


def test_seeding_without_weights_is_another_draw():
    points, weights = normal(60, 3), torch.ones(60)
    weights[:5] = 1000.0

    with_weights = SklearnKMeans(inits=1).partition(points, weights, 12, seed=0)
    without = ReferenceKMeans(inits=1).partition(points, weights, 12, seed=0)

    assert groups(with_weights.labels.numpy()) != groups(without.labels.numpy())


def test_few_points_are_clustered_as_well_as_scikit_learn_does():
    points, weights = normal(100, 20), normal(100, seed=1).abs()

    def mean_objective(clustering):
        found = [clustering.partition(points, weights, 6, seed).objective for seed in range(20)]
        return np.mean(found)

    assert mean_objective(SmallKMeans()) == pytest.approx(mean_objective(SklearnKMeans()), rel=0.01)


def test_many_points_are_left_to_scikit_learn(monkeypatch):
    monkeypatch.setattr(small_kmeans, "_MOST", 30)
    points = normal(40, 3)

    one = SmallKMeans().partition(points, torch.ones(40), 4, seed=0)
    other = SklearnKMeans().partition(points, torch.ones(40), 4, seed=0)

    assert torch.equal(one.labels, other.labels)


def test_squared_distances_survive_a_far_origin():
    points = normal(20, 3) + 1000

    squares = squared_distances(points, points[:4])

    exact = torch.cdist(points.double(), points[:4].double()).square()
    assert torch.allclose(squares.double(), exact, atol=1e-2)
    assert bool((squares >= 0).all())


def test_wrong_settings_are_refused():
    with pytest.raises(SettingError, match="inits must be at least 1"):
        SklearnKMeans(inits=0)
