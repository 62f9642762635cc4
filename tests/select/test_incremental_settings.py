import pytest
import torch

from attakit.errors import SettingError
from attakit.records import Rows
from attakit.select import IncrementalClustering
from given_clusters import rows


def test_the_cluster_count_grows_with_the_steps():
    by_one = IncrementalClustering(initial_clusters=10, cluster_growth=1)
    by_a_third = IncrementalClustering(initial_clusters=10, cluster_growth=0.3)

    assert [by_one.cluster_count(step) for step in range(3)] == [10, 11, 12]
    assert [by_a_third.cluster_count(step) for step in (0, 3, 4, 10)] == [10, 10, 11, 13]


def test_only_growing_clusters_set_the_pace():
    assert IncrementalClustering(cluster_growth=0).sets_pace
    assert not IncrementalClustering().sets_pace


def test_settings_of_kmeans_reach_it():
    assert IncrementalClustering(inits=10).clustering.inits == 10


def test_another_seed_may_choose_other_samples():
    draws = torch.Generator().manual_seed(0)
    points = torch.randn(60, 2, generator=draws)
    names = tuple(map(str, range(60)))
    candidates = Rows(names, points, torch.zeros(60, 2), torch.ones(60))
    nothing = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))

    choices = {
        IncrementalClustering(seed=seed, inits=1).select(candidates, nothing, 10, step=0).samples
        for seed in range(4)
    }

    assert len(choices) > 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"initial_clusters": 0}, "initial_clusters must be at least 1, got 0"),
        ({"initial_clusters": 3}, "initial_clusters = 3 has no effect without cluster_growth"),
        ({"cluster_growth": -1}, "cluster_growth must be at least 0, got -1"),
        ({"inits": 0}, "inits must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(SettingError, match=message):
        IncrementalClustering(**wrong)


def test_it_warns_where_the_first_step_has_less_samples_than_clusters(caplog):
    pair = rows(a=(0, 0), b=(9, 9))

    IncrementalClustering().select(pair, rows(), limit=1, step=0)
    IncrementalClustering(cluster_growth=1, initial_clusters=2).select(pair, rows(), 1, step=0)
    IncrementalClustering(cluster_growth=1).select(pair, rows(), limit=1, step=1)
    assert not caplog.records

    IncrementalClustering(cluster_growth=1).select(pair, rows(), limit=1, step=0)
    assert "2 uncertain samples for 10 clusters" in caplog.text
    assert "buffer=100" in caplog.text
