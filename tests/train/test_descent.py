import math

import pytest
import torch
from torch.optim import SGD

from attakit.errors import ModelError
from attakit.train.descent import descend


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_changes_nothing(value):
    weight = torch.nn.Parameter(torch.tensor(1.0))

    with pytest.raises(ModelError, match=rf"Tent: the loss became {value}\. Lower lr \(now 0\.5\)"):
        descend("Tent", SGD([weight], lr=0.5), weight * value)
    assert weight.item() == 1.0


def test_gradients_of_earlier_steps_do_not_add_up():
    weight = torch.nn.Parameter(torch.tensor(1.0))
    optimizer = SGD([weight], lr=0.25)

    assert [descend("Tent", optimizer, weight**2) for _ in range(2)] == [1.0, 0.25]
    assert weight.item() == 0.25
