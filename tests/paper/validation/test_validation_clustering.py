from itertools import pairwise

import numpy as np
import pytest

from attakit.errors import SettingError
from attakit.paper.validation import ClusteringSettings, follow_clustering

SETTINGS = ClusteringSettings(steps=3, batch_size=20, initial_clusters=4)


@pytest.fixture
def steps(testbed):
    return follow_clustering(testbed, SETTINGS)


def test_the_domains_come_in_turn(steps):
    assert [step.domain for step in steps] == ["optdigits", "outline", "textured"]


def test_anchors_stay_and_chosen_samples_join_them(steps):
    for before, after in pairwise(steps):
        assert after.is_anchor.sum() == before.is_anchor.sum() + before.is_chosen.sum()
    assert not steps[0].is_anchor.any()
    assert [len(step.places) - step.is_anchor.sum() for step in steps] == [20, 20, 20]


def test_every_new_cluster_without_an_anchor_is_asked_about(steps):
    for step in steps:
        covered = set(step.clusters[step.is_anchor])
        fresh = set(step.clusters) - covered
        assert set(step.clusters[step.is_chosen]) == fresh
        assert step.is_chosen.sum() == len(fresh)


def test_anchors_stand_for_all_samples_that_came(steps):
    for number, step in enumerate(steps, 1):
        anchors = step.is_anchor | step.is_chosen
        assert step.new_weights[anchors].sum() == pytest.approx(20 * number)


def test_clusters_grow_by_one(steps):
    assert [step.cluster_count for step in steps] == [4, 5, 6]


def test_places_depend_on_the_seed_only(testbed, steps):
    again = follow_clustering(testbed, SETTINGS)

    for one, other in zip(steps, again, strict=True):
        assert np.array_equal(one.places, other.places)


def test_more_samples_than_a_domain_has_are_refused(testbed):
    with pytest.raises(SettingError, match="'outline' has 800 samples"):
        follow_clustering(testbed, ClusteringSettings(batch_size=600, steps=3 * 2))


@pytest.mark.parametrize(
    "setting",
    [{"steps": 0}, {"batch_size": 3}, {"initial_clusters": 0}, {"cluster_growth": -1}],
)
def test_impossible_settings_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        ClusteringSettings(**setting)
