import pytest
import torch

from attakit.errors import ModelError
from attakit.records import Rows
from attakit.select import HighestEntropy, SmallestMargin


def rows(**probabilities):
    chances = torch.tensor(list(probabilities.values())).reshape(-1, 3)
    return Rows(tuple(probabilities), chances, chances.log(), torch.ones(len(probabilities)))


# Margins by hand: 0.05, 0.10, 0.50. The entropies are 0.83, 1.09 and 0.80.
CANDIDATES = {"torn": [0.5, 0.45, 0.05], "lost": [0.4, 0.3, 0.3], "sure": [0.7, 0.2, 0.1]}


def test_the_smallest_gap_between_the_two_likeliest_classes_comes_first():
    selection = SmallestMargin().select(rows(**CANDIDATES), rows(), limit=3, step=0)

    assert selection.samples == ("torn", "lost", "sure")
    assert selection.weights == {"torn": 1, "lost": 1, "sure": 1}


def test_the_margin_is_not_the_entropy():
    asked = [
        kind().select(rows(**CANDIDATES), rows(), limit=1, step=0).samples
        for kind in (SmallestMargin, HighestEntropy)
    ]

    assert asked == [("torn",), ("lost",)]


def test_known_samples_are_passed_over():
    known = rows(torn=[0.5, 0.45, 0.05])

    assert SmallestMargin().select(rows(**CANDIDATES), known, 1, 0).samples == ("lost",)


def test_a_diverged_model_is_named():
    with pytest.raises(ModelError, match=r"SmallestMargin: logits.*diverged"):
        SmallestMargin().select(rows(bad=[float("nan"), 0.5, 0.5]), rows(), 1, 0)
