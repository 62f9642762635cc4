import pytest
import torch
from torch import nn

from attakit.nn import Classifier, FisherPenalty, diagonal_fisher


class Scales(nn.Module):
    """Two logits, a·x and b·x."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(1, 2, bias=False)
        self.unused = nn.Parameter(torch.ones(1))
        with torch.no_grad():
            self.head.weight.copy_(torch.tensor([[1.0], [-1.0]]))

    def forward(self, inputs):
        return self.head(inputs)


# For an input x the logits are (x, -x), and the own answer is the first class where x > 0.
# ∂CE/∂a = (p₁ - 1)·x and ∂CE/∂b = p₂·x, where p₂ = 1/(1 + e^{2x}); for x < 0 the classes change
# places. With x = ±1 the gradient of a is -q, of b is q, with q = 1/(1 + e²), for both signs:
# x = -1 answers the second class, ∂CE/∂a = p₁·x = q·(-1) and ∂CE/∂b = (p₂ - 1)·x = q.
Q = 1 / (1 + torch.e**2)


def test_the_fisher_information_is_the_square_of_the_gradient():
    model = Classifier(Scales())
    (fisher,) = diagonal_fisher(model, [model.head.weight], torch.tensor([[1.0], [-1.0]]))
    torch.testing.assert_close(fisher, torch.full((2, 1), Q**2))


def test_batches_are_squared_before_the_mean():
    model = Classifier(Scales())
    # Batches (1, 1, 0) and (0): mean gradients of a are -(2/3)q (at zero p = 1/2, but x = 0) and 0.
    inputs = torch.tensor([[1.0], [1.0], [0.0], [0.0]])
    (fisher,) = diagonal_fisher(model, [model.head.weight], inputs, batch_size=3)
    torch.testing.assert_close(fisher, torch.full((2, 1), (2 / 3 * Q) ** 2 / 2))


def test_gradients_of_the_model_are_left_alone_and_unused_parameters_do_not_matter():
    model = Classifier(Scales())
    parameters = list(model.parameters())
    fisher = diagonal_fisher(model, parameters, torch.ones(2, 1))
    matters = {tuple(each.shape): bool(each.any()) for each in fisher}
    assert matters == {(2, 1): True, (1,): False}
    assert all(parameter.grad is None for parameter in parameters)


def test_the_penalty_pulls_back_in_proportion_to_what_matters():
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    penalty = FisherPenalty([weight], [torch.tensor([3.0, 0.5])])
    assert penalty().item() == 0
    with torch.no_grad():
        weight.copy_(torch.tensor([1.5, 0.0]))
    penalty().backward()
    # ∂/∂θ Σ F (θ - θ₀)² = 2 F (θ - θ₀)
    torch.testing.assert_close(weight.grad, torch.tensor([2 * 3 * 0.5, 2 * 0.5 * -2]))


def test_a_penalty_without_fisher_information_is_zero_and_keeps_nothing():
    penalty = FisherPenalty([nn.Parameter(torch.ones(3))], [])
    assert penalty().item() == 0
    assert len(penalty) == 0
    assert penalty.state_dict() == {"fisher": [], "origin": []}


def test_a_penalty_is_saved_with_where_it_pulls_to():
    weight = nn.Parameter(torch.tensor([1.0]))
    penalty = FisherPenalty([weight], [torch.tensor([3.0])])
    with torch.no_grad():
        weight.fill_(5.0)
    later = FisherPenalty([weight], [torch.tensor([7.0])])
    later.load_state_dict(penalty.state_dict())
    assert later().item() == 3 * (5 - 1) ** 2


def test_a_penalty_of_another_shape_is_refused():
    penalty = FisherPenalty([nn.Parameter(torch.ones(3))], [torch.ones(3)])
    with pytest.raises(ValueError, match=r"fisher has shapes \[\] instead of \[\(3,\)\]"):
        penalty.load_state_dict({"fisher": [], "origin": []})
