import math

import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.methods import LAME, SourceOnly
from attakit.methods.lame import affinities, agree
from attakit.testing import tiny_batch, tiny_classifier


def test_two_neighbours_agree_as_worked_out_by_hand():
    # Two samples, each the other's only neighbour, answer (p, 1-p) alike. With W = [[0, 1], [1, 0]]
    # the iteration is z ← softmax(log q + z) on both. In terms of the difference d = z₁ - z₂ of
    # the two classes it is d ← tanh((ln(p/(1-p)) + d) / 2).
    chance, difference = 0.7, 0.4
    for _ in range(200):
        difference = math.tanh((math.log(chance / (1 - chance)) + difference) / 2)
    logs = torch.tensor([[chance, 1 - chance]] * 2, dtype=torch.float64).log()
    kernel = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)

    corrected = agree(logs, kernel).softmax(dim=1)

    assert corrected[0, 0].item() == pytest.approx((1 + difference) / 2, abs=1e-6)


def test_the_gaussian_is_as_wide_as_neighbours_are_far():
    # Unit vectors at 0, 60 and 180 degrees: distances 1, √3 and 2. Each sample is its own nearest,
    # so with k = 2 the distances to the next are 1, 1 and √3; their mean is the width.
    angles = torch.tensor([0.0, math.pi / 3, math.pi])
    features = 5 * torch.stack([angles.cos(), angles.sin()], dim=1)
    width = (2 + math.sqrt(3)) / 3
    expected = [math.exp(-(distance**2) / (2 * width**2)) for distance in (0, 1, 2)]

    assert affinities(features, "rbf", 2)[0].tolist() == pytest.approx(expected, abs=1e-5)


def test_linear_affinity_is_the_cosine():
    features = torch.tensor([[2.0, 0.0], [3.0, 3.0]])

    assert affinities(features, "linear", 1)[0].tolist() == pytest.approx([1, math.sqrt(0.5)])


def test_nearest_neighbours_leave_the_sample_itself_out():
    features = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])

    assert affinities(features, "knn", 1).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0]]
    assert affinities(features, "knn", 9).sum() == 6


def test_an_unsure_sample_among_sure_ones_of_another_class_changes_sides():
    # Features are the inputs; the head is the identity, so the inputs are the logits too.
    head = nn.Linear(2, 2, bias=False)
    nn.init.eye_(head.weight)
    inputs = torch.tensor([[4.0, 0.0], [4.0, 0.5], [3.0, 0.0], [1.0, 1.2]])

    assert SourceOnly(head).predict(inputs).logits.argmax(dim=1).tolist() == [0, 0, 0, 1]
    assert LAME(head, affinity="knn").predict(inputs).logits.argmax(dim=1).tolist() == [0] * 4


@pytest.mark.parametrize("settings", [{"strength": 0.0}, {"affinity": "knn"}])
def test_without_strength_or_company_answers_are_those_of_the_model(settings):
    inputs = tiny_batch(size=8 if "strength" in settings else 1).inputs
    plain = SourceOnly(tiny_classifier()).predict(inputs).logits.softmax(dim=1)

    given = LAME(tiny_classifier(), **settings).predict(inputs).logits.softmax(dim=1)

    assert torch.allclose(given, plain, atol=1e-6)


def test_equal_features_do_not_divide_by_zero():
    method = LAME(tiny_classifier())

    assert method.predict(tiny_batch(size=1).inputs.repeat(4, 1)).logits.isfinite().all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"affinity": "near"}, "LAME: affinity must be one of knn, rbf, linear, got 'near'"),
        ({"neighbours": 0}, "LAME: neighbours must be at least 1, got 0"),
        ({"strength": -1}, "LAME: strength must be at least 0, got -1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        LAME(tiny_classifier(), **settings)
