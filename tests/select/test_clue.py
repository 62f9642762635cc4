"""CLUE's weights and weighted centroids, worked out by hand."""

import math

import pytest
import torch

from attakit.errors import ModelError, SettingError
from attakit.records import Rows
from attakit.select import CLUE, ClusterCentres


def rows(points, logits):
    features = torch.tensor(points, dtype=torch.float32).reshape(-1, 2)
    count = len(features)
    names = tuple(f"p{number}" for number in range(count))
    return Rows(names, features, torch.tensor(logits).reshape(count, -1), torch.ones(count))


NOTHING = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_a_sample_weighs_the_entropy_of_its_softened_prediction(temperature):
    # Two classes: p = 1 / (1 + exp(-gap / T)), H = -p ln p - (1 - p) ln(1 - p).
    gap = 1.5
    p = 1 / (1 + math.exp(-gap / temperature))
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)

    weights = CLUE(temperature=temperature).uncertainty(torch.tensor([[gap, 0.0], [0.0, 0.0]]))

    assert weights.tolist() == pytest.approx([entropy, math.log(2)], rel=1e-3)


def test_the_centroid_moves_to_where_samples_are_unsure():
    # H of (0.9, 0.1) is 0.325, of (0.5, 0.5) it is ln 2 = 0.693; the certain weigh nothing. So the
    # centroid is at x = (0·0.325 + 3·0.325 + 10·0.693) / (0.325 + 0.325 + 0.693) = 5.89.
    sure, unsure, certain = [math.log(9), 0.0], [0.0, 0.0], [99.0, 0.0]
    points = [[0, 0], [3, 0], [10, 0], [6, 0], [0, 0]]
    candidates = rows(points, [sure, sure, unsure, certain, certain])

    def asked(temperature):
        return CLUE(temperature=temperature).select(candidates, NOTHING, 1, 0).samples

    assert asked(1.0) == ("p3",)
    assert asked(0.1) == ("p2",)  # the sure ones weigh nothing either: x = 10
    assert asked(1000.0) == ("p1",)  # all weigh the same: x = 3.8


def test_the_sample_at_the_weighted_mean_is_asked():
    # Corners of a square of side 8; only (8, 8) and (8, 0) are unsure, equally. Weighted centroid
    # (8, 4): the sample there is asked. The plain mean is (4.8, 4), nearest to the other one.
    points = [[0, 0], [0, 8], [8, 0], [8, 8], [8, 4], [5, 4]]
    sure, unsure = [99.0, 0.0], [0.0, 0.0]
    candidates = rows(points, [sure, sure, unsure, unsure, sure, sure])

    assert CLUE().select(candidates, NOTHING, 1, 0).samples == ("p4",)
    assert ClusterCentres().select(candidates, NOTHING, 1, 0).samples == ("p5",)


def test_nearest_samples_are_refilled_until_there_are_enough():
    # Without uncertainty the sure ones shape no cluster, yet five questions are wanted.
    candidates = rows([[number, 0] for number in range(6)], [[99.0, 0.0]] * 5 + [[0.0, 0.0]])

    selection = CLUE().select(candidates, NOTHING, 5, 0)

    assert selection.samples == ("p5", "p4", "p3", "p2", "p1")


def test_a_model_sure_of_everything_is_clustered_without_weights():
    candidates = rows([[0, 0], [1, 0], [2, 0]], [[999.0, 0.0]] * 3)

    assert CLUE().select(candidates, NOTHING, 1, 0).samples == ("p1",)


def test_a_diverged_model_is_named():
    with pytest.raises(ModelError, match=r"CLUE: logits.*diverged"):
        CLUE().select(rows([[0, 0]], [[float("nan"), 0.0]]), NOTHING, 1, 0)


@pytest.mark.parametrize("temperature", [0, -1.0])
def test_the_temperature_is_above_zero(temperature):
    with pytest.raises(SettingError, match="CLUE: temperature must be greater than 0"):
        CLUE(temperature=temperature)
