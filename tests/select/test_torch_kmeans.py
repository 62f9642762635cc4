import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from attakit.select import SklearnKMeans, TorchKMeans
from attakit.select.torch_kmeans import draw_centres, lloyd


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def separated(seed=0):
    centres = 40 * normal(6, 8, seed=seed)
    return (centres[:, None] + normal(6, 10, 8, seed=seed + 1)).reshape(60, 8)


def groups(labels):
    return {tuple(np.flatnonzero(labels == label)) for label in np.unique(labels)}


@pytest.mark.parametrize("seed", range(5))
def test_torch_finds_the_same_partition_as_scikit_learn(seed):
    points, weights = separated(seed), 1 + normal(60, seed=seed).abs()

    ours = TorchKMeans().partition(points, weights, count=6, seed=seed)
    theirs = SklearnKMeans().partition(points, weights, count=6, seed=seed)

    assert groups(ours.labels.numpy()) == groups(theirs.labels.numpy())
    assert ours.objective == pytest.approx(theirs.objective, rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_torch_from_the_same_centres_reaches_the_objective_of_scikit_learn(seed):
    points, weights = normal(200, 6, seed=seed), 5 * normal(200, seed=seed + 9).abs()
    centres = points[:12]

    ours = lloyd(points, weights, centres, iterations=300, tolerance=0.0)
    theirs = KMeans(12, init=centres.numpy(), n_init=1, tol=0.0, algorithm="lloyd").fit(
        points.numpy(), sample_weight=weights.numpy()
    )

    assert ours.objective == pytest.approx(float(theirs.inertia_), rel=1e-4)
    assert groups(ours.labels.numpy()) == groups(theirs.labels_)


def test_torch_is_as_good_as_scikit_learn_on_points_without_structure():
    points, weights = normal(300, 8), 5 * normal(300, seed=1).abs()

    ours = [TorchKMeans(inits=5).partition(points, weights, 20, s).objective for s in range(4)]
    theirs = [SklearnKMeans(inits=5).partition(points, weights, 20, s).objective for s in range(4)]

    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.03)


def test_lloyd_starts_an_empty_cluster_again_at_the_farthest_point():
    points = torch.tensor([[0.0], [1.0], [50.0]])
    nobody_is_near_the_second = torch.tensor([[0.0], [1000.0]])

    found = lloyd(points, torch.ones(3), nobody_is_near_the_second, iterations=10, tolerance=0.0)

    assert sorted(found.centroids.flatten().tolist()) == [0.5, 50.0]


def test_lloyd_stops_after_the_iterations_allowed():
    points, centres = normal(200, 2), normal(200, 2)[:10]

    once = lloyd(points, torch.ones(200), centres, iterations=1, tolerance=0.0)
    often = lloyd(points, torch.ones(200), centres, iterations=300, tolerance=0.0)

    assert often.objective < once.objective


def first_centres(weights, power=2, draws=300):
    """How often each of three points on a line is drawn next to one that surely is."""
    points = torch.tensor([[0.0], [1.0], [3.0]])
    sources = torch.Generator().manual_seed(0)
    drawn = [draw_centres(points, weights, 2, power, sources) for _ in range(draws)]
    return [[float(point) in pair.flatten().tolist() for pair in drawn] for point in points]


def test_seeding_with_weights_prefers_heavy_points():
    heavy, light = torch.tensor([1.0, 50.0, 1.0]), torch.ones(3)

    assert sum(first_centres(heavy)[1]) > 1.3 * sum(first_centres(light)[1])


def test_seeding_by_distance_spreads_less_than_by_squared_distance():
    squared = sum(first_centres(torch.ones(3), power=2)[2])
    plain = sum(first_centres(torch.ones(3), power=1)[2])

    assert plain < squared
