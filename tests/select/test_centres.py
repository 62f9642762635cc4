import pytest
import torch

from attakit.errors import ModelError, SettingError
from attakit.records import Rows
from attakit.select import ClusterCentres
from attakit.select.centres import nearest_distinct


def rows(points, prefix="p"):
    features = torch.tensor(points, dtype=torch.float32).reshape(-1, 2)
    count = len(features)
    names = tuple(f"{prefix}{number}" for number in range(count))
    return Rows(names, features, torch.zeros(count, 2), torch.ones(count))


# Two groups of three and of four; the middle of each is also their mean.
GROUPS = [[0, 0], [2, 0], [1, 0], [20, 0], [22, 0], [21, 1], [21, 0]]


def test_one_sample_is_asked_per_cluster_the_largest_first():
    selection = ClusterCentres().select(rows(GROUPS), rows([]), 2, 0)

    # Means: (1, 0) is p2 itself; (21, 0.25) is nearest to p6 at (21, 0).
    assert selection.samples == ("p6", "p2")
    assert selection.weights == {"p6": 1, "p2": 1}
    labels = [selection.clusters[f"p{number}"] for number in range(7)]
    assert labels[:3] == [labels[0]] * 3
    assert labels[3:] == [1 - labels[0]] * 4


def test_known_names_are_neither_clustered_nor_asked():
    known = Rows(("p2",), torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1))

    selection = ClusterCentres().select(rows(GROUPS), known, 2, 0)

    assert "p2" not in selection.clusters
    assert selection.samples == ("p6", "p0")  # mean (1, 0), as far from p0 as from p1


def test_copies_of_one_point_are_asked_until_there_are_enough():
    selection = ClusterCentres().select(rows([[1, 1]] * 5), rows([]), 3, 0)

    assert len(set(selection.samples)) == 3


def test_a_row_is_taken_once_and_the_next_nearest_takes_its_place():
    distances = torch.tensor([[0.0, 1.0, 1.0], [5.0, 3.0, 9.0], [7.0, 4.0, 2.0]])

    assert nearest_distinct(distances, 3) == [0, 1, 2]
    assert nearest_distinct(distances, 2) == [0, 1]
    assert nearest_distinct(distances[:, :1], 9) == [0, 1, 2]


def test_a_diverged_model_is_named():
    with pytest.raises(ModelError, match="diverged"):
        ClusterCentres().select(rows([[float("inf"), 0]]), rows([]), 10, 0)


def test_settings_are_checked():
    with pytest.raises(SettingError, match="inits must be at least 1"):
        ClusterCentres(inits=0)


def test_of_equally_near_samples_the_first_is_taken_however_rounding_falls():
    distances = torch.tensor([[9.0, 9.0], [1.0001, 9.0], [1.0, 2.0], [1.00005, 1.9999]])

    assert nearest_distinct(distances, 3) == [1, 2, 3]
