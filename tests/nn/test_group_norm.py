"""Group norm on a CPU: torch 2.13 ends the process where these tests would fail."""

import pytest
import torch
from torch import nn

from attakit.nn import Classifier
from attakit.nn.group_norm import safe_group_norm
from attakit.nn.seeding import seeded

IMAGES = torch.linspace(-1, 1, 4 * 3 * 8 * 8).reshape(4, 3, 8, 8)
CHANNELS_LAST = IMAGES.to(memory_format=torch.channels_last)


def grouped_cnn():
    with seeded(0, "model"):
        return nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.GroupNorm(2, 8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8, 3),
        )


def only_norm_trains(model):
    model.requires_grad_(False)
    model[1].requires_grad_(True)
    return model


def gradient(inputs):
    model = only_norm_trains(grouped_cnn())
    Classifier(model)(inputs).logits.sum().backward()
    return model[1].weight.grad


def test_gradients_in_channels_last_order_are_those_of_contiguous_inputs():
    assert torch.allclose(gradient(CHANNELS_LAST), gradient(IMAGES), atol=1e-6)


def test_no_hook_stays_behind():
    model = grouped_cnn()
    Classifier(model)(CHANNELS_LAST)
    assert not model[1]._forward_pre_hooks


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_layout_is_kept_where_no_gradient_is_recorded(mode):
    layer = nn.GroupNorm(1, 3)
    with mode(), safe_group_norm(layer):
        assert layer(CHANNELS_LAST).is_contiguous(memory_format=torch.channels_last)
