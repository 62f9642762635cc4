import pytest
import torch
from torch import nn

from attakit.nn import Origin


def moved():
    weight = nn.Parameter(torch.tensor([1.0, 3.0]))
    origin = Origin([weight])
    with torch.no_grad():
        weight.add_(4.0)
    return weight, origin


def test_restoring_clears_what_the_optimizer_remembers():
    weight, origin = moved()
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
    weight.sum().backward()
    optimizer.step()
    origin.restore(optimizer)

    assert weight.tolist() == [1.0, 3.0]
    assert len(optimizer.state) == 0


def test_pulling_goes_a_share_of_the_way():
    weight, origin = moved()
    origin.pull(0.25)

    assert weight.tolist() == [4.0, 6.0]


def test_the_state_must_fit():
    _, origin = moved()
    with pytest.raises(ValueError, match=r"shapes \[\(3,\)\] instead of \[\(2,\)\]"):
        origin.load_state_dict({"values": [torch.zeros(3)]})
