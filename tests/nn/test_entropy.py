import math

import pytest
import torch

from attakit.nn import softmax_entropy, symmetric_cross_entropy


def test_equal_logits_have_the_entropy_of_a_fair_die():
    logits = torch.full((2, 6), 3.0)
    torch.testing.assert_close(softmax_entropy(logits), torch.full((2,), math.log(6)))


def test_two_classes_match_the_hand_worked_value():
    probabilities = torch.tensor([[0.25, 0.75]])
    expected = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert softmax_entropy(probabilities.log()).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1e3, 1e30])
def test_huge_logits_have_no_entropy_and_a_finite_gradient(scale):
    logits = torch.tensor([[scale, 0.0, -scale]], requires_grad=True)
    entropy = softmax_entropy(logits)
    entropy.sum().backward()
    assert entropy.item() == 0
    assert logits.grad.isfinite().all()


def test_no_rows_have_no_entropies():
    assert softmax_entropy(torch.zeros(0, 3)).shape == (0,)


def test_a_class_that_is_ruled_out_adds_nothing():
    logits = torch.tensor([[0.0, 0.0, -torch.inf]], requires_grad=True)
    entropy = softmax_entropy(logits)
    entropy.sum().backward()
    assert entropy.item() == pytest.approx(math.log(2))
    assert logits.grad.isfinite().all()


def test_symmetric_cross_entropy_is_worked_out_by_hand():
    # p = (0.8, 0.2), q = (0.5, 0.5): -Σ p log q = ln 2, -Σ q log p = -½(ln 0.8 + ln 0.2).
    one, other = torch.tensor([[0.8, 0.2]]).log(), torch.zeros(1, 2)
    expected = 0.5 * (math.log(2) - 0.5 * (math.log(0.8) + math.log(0.2)))

    assert symmetric_cross_entropy(one, other).item() == pytest.approx(expected)
    assert symmetric_cross_entropy(other, one).item() == pytest.approx(expected)
