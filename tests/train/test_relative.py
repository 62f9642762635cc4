import pytest
import torch
from torch import nn

from attakit.train.relative import relative_adam


def rate(weights: int) -> float:
    found: float = relative_adam([nn.Parameter(torch.ones(weights))]).param_groups[0]["lr"]
    return found


def test_a_tensor_of_zeros_can_move():
    weights = nn.Parameter(torch.zeros(3))
    assert relative_adam([weights]).param_groups[0]["lr"] > 0


def test_a_million_weights_move_less_than_a_few():
    assert rate(999_999) == rate(10)
    assert rate(1_000_000) == pytest.approx(0.12 * rate(10))
