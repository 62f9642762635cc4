import math

import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.methods import DeYO
from attakit.queries import Allowance
from attakit.records import Batch
from attakit.testing import check_method, tiny_batch, tiny_classifier

LEARNS = {"lr": 0.1, "entropy_share": 1.0, "difference_bound": -1.0}


def swapping():
    """Two logits: twice the upper half of an image, and its lower half."""
    head = nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]))
    return nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), head)


def test_it_keeps_its_promises_while_it_learns():
    check_method(lambda model: DeYO(model, **LEARNS))


def test_weights_are_worked_out_by_hand():
    # E₀ = 0.4 ln 2 = 0.277. For H = 0.2 and a difference of 0.5 the weight is e^0.077 + e^0.5 =
    # 2.729, for H = 0.1 and 0.3 it is e^0.177 + e^0.3 = 2.544; the loss is the mean of 0.5458 and
    # 0.2544.
    method = DeYO(tiny_classifier())
    loss = method._loss(torch.tensor([0.2, 0.1]), torch.tensor([0.5, 0.3]), math.log(2))

    assert loss.item() == pytest.approx((0.5458 + 0.2544) / 2, abs=2e-4)


def test_a_sample_whose_answer_survives_the_shuffle_is_not_learned_from():
    # An image of one value answers the same however its patches lie: its difference is 0.
    method = DeYO(swapping(), lr=0.1, entropy_share=1.0, patches=2, left_out=0.0)
    flat = torch.ones(4, 1, 2, 2) * torch.tensor([1.0, 2.0, 3.0, 4.0]).view(4, 1, 1, 1)
    step = method.step(Batch(0, tuple("abcd"), flat), Allowance(0))

    assert (step.numbers["sure"], step.numbers["kept"]) == (4, 0)
    assert method.trained[0].item() == 1.0


def test_a_sample_whose_answer_depends_on_the_shape_is():
    method = DeYO(swapping(), lr=0.1, entropy_share=1.0, patches=2, left_out=0.0)
    image = torch.tensor([[5.0, 5.0], [0.0, 0.0]]).expand(8, 1, 2, 2)
    step = method.step(Batch(0, tuple("abcdefgh"), image.clone()), Allowance(0))

    assert step.numbers["kept"] > 0
    assert method.trained[0].item() > 1.0  # surer answers need a larger scale


def test_unsure_samples_are_left_out_before_they_are_shuffled():
    method = DeYO(tiny_classifier(), entropy_share=0.0)
    step = method.step(tiny_batch(), Allowance(0))

    assert (step.numbers["sure"], method.looks) == (0, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"entropy_share": 2}, "DeYO: entropy_share must be at least 0 and at most 1, got 2"),
        ({"difference_bound": 2}, "DeYO: difference_bound must be at least -1 and at most 1"),
        ({"patches": 0}, "DeYO: patches must be at least 1, got 0"),
        ({"left_out": 2}, "DeYO: left_out must be at least 0 and at most 1, got 2"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        DeYO(tiny_classifier(), **settings)
