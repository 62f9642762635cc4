import pytest
import torch

from attakit.errors import ModelError
from attakit.records import Rows
from attakit.select import KCentre
from attakit.select.k_centre import farthest_first


def rows(points, prefix="p"):
    features = torch.tensor(points, dtype=torch.float32).reshape(-1, 2)
    names = tuple(f"{prefix}{number}" for number in range(len(features)))
    return Rows(names, features, torch.zeros(len(features), 2), torch.ones(len(features)))


# In the plane: a = (0, 0), b = (1, 0), c = (10, 0), d = (10, 3), e = (4, 8).
PLANE = [[0, 0], [1, 0], [10, 0], [10, 3], [4, 8]]


def test_the_farthest_from_known_and_chosen_comes_next():
    # Known: (0, 0). Distances 0, 1, 10, 10.44, 8.94: d first. Then the nearest of known and d is
    # 0, 1, 3, -, min(8.94, 7.81): e. Then 0, 1, 3: c. Then b, then a.
    selection = KCentre().select(rows(PLANE), rows([[0, 0]], "k"), 5, 0)

    assert selection.samples == ("p3", "p4", "p2", "p1", "p0")
    assert set(selection.weights.values()) == {1}


def test_while_nothing_is_known_the_middle_comes_first():
    # The mean is (5, 2.2). Distances: a 5.46, b 4.56, c 5.46, d 5.06, e 5.89.
    selection = KCentre().select(rows(PLANE), rows([]), 2, 0)

    assert selection.samples == ("p1", "p3")  # then d is farthest from b: 9.49


def test_copies_are_asked_last_and_once():
    selection = KCentre().select(rows([[1, 1], [1, 1], [1, 1], [5, 1]]), rows([]), 4, 0)

    assert selection.samples[1] == "p3"
    assert sorted(selection.samples) == ["p0", "p1", "p2", "p3"]


def test_many_known_samples_count_all():
    centres = torch.arange(150, dtype=torch.double)[:, None]
    points = torch.tensor([[0.4], [148.9], [149.7], [70.5]], dtype=torch.double)

    # Nearest whole numbers up to 149: 0.4, 0.1, 0.7 and 0.5 away.
    assert farthest_first(points, centres, 4) == [2, 3, 0, 1]


def test_a_diverged_model_is_named():
    with pytest.raises(ModelError, match=r"KCentre: features.*diverged"):
        KCentre().select(rows([[float("nan"), 0]]), rows([]), 10, 0)
