"""Methods that train on convolutional models with group norm, which once ended the process."""

import pytest
import torch
from torch import nn

from attakit.methods import EATA, SAR, CoTTA, Enhanced, SimATTA, Tent
from attakit.nn import named_model
from attakit.nn.seeding import seeded
from attakit.queries import Allowance, Answer
from attakit.records import Batch

METHODS = {
    "tent": lambda model: Tent(model, lr=0.1),
    "eata": lambda model: EATA(model, lr=0.1, reliable_share=1.0, redundancy_margin=1.0),
    "sar": lambda model: SAR(model, lr=0.1, reliable_share=1.0, left_out=0),
    "cotta": lambda model: CoTTA(model, trainable="norm", views=2),
    "enhanced": lambda model: Enhanced(model, method=Tent(model, lr=0.1)),
    "simatta": lambda model: SimATTA(model, high_entropy_bound=0.0, trainable="norm"),
}


def images(step):
    with seeded(step, "images"):
        names = tuple(f"{step}-{number}" for number in range(8))
        return Batch(step, names, torch.randn(8, 3, 8, 8))


def grouped_cnn():
    with seeded(0, "model"):
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.ReLU(),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        )


@pytest.mark.parametrize("name", METHODS)
def test_a_convolutional_model_with_group_norm_adapts(name):
    method = METHODS[name](grouped_cnn())
    before = {key: value.clone() for key, value in method.model.state_dict().items()}

    for step in range(3):
        queries = method.step(images(step), Allowance(4)).queries
        method.learn([Answer(query, 0, "test") for query in queries])

    after = method.model.state_dict()
    assert any(not torch.equal(before[key], after[key]) for key in before)


def test_the_model_that_sar_was_published_with_adapts():
    method = Tent(named_model("resnet50_gn", classes=3))
    assert method.adapt(method.place(torch.randn(2, 3, 32, 32))).numbers["loss"] > 0
