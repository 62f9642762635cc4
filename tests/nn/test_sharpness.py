import pytest
import torch
from torch import nn

from attakit.nn import ascended


def with_gradient(values, gradient):
    parameter = nn.Parameter(torch.tensor(values))
    parameter.grad = None if gradient is None else torch.tensor(gradient)
    return parameter


def test_the_ascent_has_the_length_of_the_radius_over_all_parameters():
    # ‖(2, 3, 6)‖ = 7, so a radius of 0.7 moves by a tenth of the gradient.
    one, other = with_gradient([0.0, 0.0], [2.0, 3.0]), with_gradient([1.0], [6.0])
    with ascended([one, other], radius=0.7):
        torch.testing.assert_close(one.data, torch.tensor([0.2, 0.3]))
        torch.testing.assert_close(other.data, torch.tensor([1.6]))


def test_parameters_come_back_bit_for_bit_even_after_a_failure():
    parameter = with_gradient([0.1, 1e-9], [0.3, 1e5])
    before = parameter.detach().clone()
    with pytest.raises(KeyError), ascended([parameter], radius=0.05):
        raise KeyError
    assert torch.equal(parameter, before)


def test_gradients_taken_inside_stay():
    parameter = with_gradient([1.0], [1.0])
    with ascended([parameter], radius=0.5):
        parameter.grad = None
        parameter.square().sum().backward()
    assert parameter.grad.item() == pytest.approx(2 * 1.5)


@pytest.mark.parametrize("gradient", [None, [0.0]])
def test_without_a_gradient_nothing_moves(gradient):
    parameter = with_gradient([1.0], gradient)
    with ascended([parameter], radius=0.5):
        assert parameter.item() == 1.0
