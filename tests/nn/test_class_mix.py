import pytest
import torch

from attakit.nn.class_mix import with_class_mix


def test_a_batch_of_one_class_pulls_its_unsure_samples_along():
    chances = torch.tensor([[0.8, 0.2]] * 30 + [[0.4, 0.6]])
    assert with_class_mix(chances).argmax(dim=1).tolist() == [0] * 31


def test_a_balanced_batch_keeps_its_answers():
    chances = torch.tensor([[0.9, 0.1], [0.1, 0.9], [0.6, 0.4], [0.4, 0.6]] * 5)
    assert torch.allclose(with_class_mix(chances), chances, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1])
def test_a_batch_may_be_tiny(count):
    found = with_class_mix(torch.tensor([[0.4, 0.6]])[:count])
    assert found.argmax(dim=1).tolist() == [1] * count
