import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.nn import (
    is_norm_layer,
    moving_statistics,
    named_model,
    norm_parameters,
    robust_statistics,
    use_batch_statistics,
    use_stored_statistics,
    uses_batch_statistics,
)

INPUTS = torch.linspace(0, 10, 12).reshape(4, 3)


@pytest.fixture
def model():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)).eval()
    model[0].running_mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    model[0].running_var.fill_(4.0)
    return model


def stored(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def assert_same_state(model: nn.Module, before: dict[str, Tensor]) -> None:
    assert list(model.state_dict()) == list(before)
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in before)


def test_frozen_statistics_neither_follow_nor_move(model):
    before = stored(model)
    expected = (INPUTS - torch.tensor([1.0, 2.0, 3.0])) / (4.0 + 1e-5) ** 0.5
    torch.testing.assert_close(model(INPUTS), expected)
    assert_same_state(model, before)


@pytest.mark.parametrize("training", [True, False])
def test_batch_statistics_follow_and_do_not_move(model, training):
    before = stored(model)
    use_batch_statistics(model)
    model[0].train(training)
    expected = F.batch_norm(INPUTS, None, None, training=True)
    torch.testing.assert_close(model(INPUTS), expected)
    torch.testing.assert_close(model(INPUTS), expected)
    assert_same_state(model, before)


@pytest.mark.parametrize("rows", [0, 1])
def test_batch_statistics_fall_back_on_stored_ones_for_a_single_value(model, rows):
    plain = model(INPUTS[:rows])
    use_batch_statistics(model)
    assert torch.equal(model(INPUTS[:rows]), plain)


def test_batch_statistics_use_a_single_image():
    images = torch.linspace(0, 1, 18).reshape(1, 2, 3, 3)
    layer = nn.BatchNorm2d(2).eval()
    use_batch_statistics(layer)
    torch.testing.assert_close(layer(images).mean(dim=(0, 2, 3)), torch.zeros(2), atol=1e-6, rtol=0)


def test_batch_statistics_come_back_after_a_failure(model):
    before = stored(model)
    use_batch_statistics(model)
    with pytest.raises(RuntimeError):
        model(torch.zeros(4, 5))
    assert_same_state(model, before)


def test_batch_statistics_keep_the_activation_inside_a_norm_layer():
    model = named_model("efficientnet_lite0", classes=2).eval()
    layer = model.bn1
    assert type(layer).__name__ == "BatchNormAct2d"
    use_batch_statistics(layer)
    outputs = layer(torch.linspace(-3, 3, 2 * 32 * 4).reshape(2, 32, 2, 2))
    assert outputs.min() == 0
    assert outputs.max() > 0


def test_batch_statistics_pass_gradients_to_scale_and_shift(model):
    use_batch_statistics(model)
    model(INPUTS).square().sum().backward()
    assert model[0].weight.grad.abs().sum() > 0


# Four samples of one feature, 0, 2, 4, 6: mean 3, unbiased variance (9 + 1 + 1 + 9) / 3 = 20/3.
# Stored mean 1 and variance 4 count for N = 12 samples, so they weigh 12/16 and the batch 4/16:
# mean 0.75 · 1 + 0.25 · 3 = 1.5, variance 0.75 · 4 + 0.25 · 20/3 = 14/3.
def mixing_layer(source_samples):
    layer = nn.BatchNorm1d(1, eps=1e-12).eval()
    layer.running_mean.fill_(1.0)
    layer.running_var.fill_(4.0)
    use_batch_statistics(layer, source_samples=source_samples)
    return layer


FEATURE = torch.tensor([[0.0], [2.0], [4.0], [6.0]])


def test_mixed_statistics_weigh_stored_and_batch_by_their_samples():
    layer = mixing_layer(12)
    before = stored(layer)
    expected = (FEATURE - 1.5) / (14 / 3) ** 0.5
    torch.testing.assert_close(layer(FEATURE), expected)
    torch.testing.assert_close(layer(FEATURE), expected)
    assert_same_state(layer, before)


def test_mixed_statistics_count_images_not_pixels():
    images = FEATURE.reshape(1, 1, 2, 2)
    layer = nn.BatchNorm2d(1, eps=1e-12).eval()
    layer.running_mean.fill_(1.0)
    layer.running_var.fill_(4.0)
    use_batch_statistics(layer, source_samples=1)
    # One image beside N = 1: half and half, so mean 2 and variance 16/3.
    torch.testing.assert_close(layer(images), (images - 2) / (16 / 3) ** 0.5)


def test_mixed_statistics_serve_a_single_value():
    # Mean (3 · 1 + 1 · 5) / 4 = 2, variance (3 · 4 + 1 · 0) / 4 = 3.
    outputs = mixing_layer(3)(torch.tensor([[5.0]]))
    torch.testing.assert_close(outputs, torch.tensor([[(5 - 2) / 3**0.5]]))


def test_mixed_statistics_lie_between_those_of_the_batch_and_the_stored_ones():
    batch_only, stored_only = mixing_layer(0), mixing_layer(float("inf"))
    torch.testing.assert_close(batch_only(FEATURE), (FEATURE - 3) / 5**0.5)
    torch.testing.assert_close(stored_only(FEATURE), (FEATURE - 1) / 2)


def test_mixed_statistics_take_inputs_of_lower_precision():
    outputs = mixing_layer(12)(FEATURE.bfloat16()).float()
    torch.testing.assert_close(outputs, (FEATURE - 1.5) / (14 / 3) ** 0.5, atol=0.02, rtol=0)


def test_mixed_statistics_are_undone_and_take_no_rows():
    layer = mixing_layer(12)
    assert layer(FEATURE[:0]).shape == (0, 1)
    use_stored_statistics(layer)
    torch.testing.assert_close(layer(FEATURE), (FEATURE - 1) / 2)


def test_a_copy_mixes_with_its_own_statistics():
    layer = mixing_layer(12)
    twin = copy.deepcopy(layer)
    twin.running_mean.fill_(5.0)
    torch.testing.assert_close(twin(FEATURE), (FEATURE - 4.5) / (14 / 3) ** 0.5)
    torch.testing.assert_close(layer(FEATURE), (FEATURE - 1.5) / (14 / 3) ** 0.5)


def test_mixing_without_stored_statistics_takes_the_batch():
    layer = nn.BatchNorm1d(1, eps=1e-12, track_running_stats=False).eval()
    use_batch_statistics(layer, source_samples=12)
    torch.testing.assert_close(layer(FEATURE), (FEATURE - 3) / 5**0.5)


def test_moving_statistics_follow_and_move(model):
    with moving_statistics(model):
        outputs = model(INPUTS)
    torch.testing.assert_close(outputs, F.batch_norm(INPUTS, None, None, training=True))
    expected = 0.9 * torch.tensor([1.0, 2.0, 3.0]) + 0.1 * INPUTS.mean(dim=0)
    torch.testing.assert_close(model[0].running_mean, expected)
    assert model[0].num_batches_tracked == 1


def test_moving_statistics_leave_dropout_and_weights_alone(model):
    weight = model[0].weight.clone()
    with moving_statistics(model):
        assert not model[1].training
        assert torch.equal(model(INPUTS), model(INPUTS))
    assert torch.equal(model[0].weight, weight)


def test_moving_statistics_end_with_the_block(model):
    with pytest.raises(KeyError), moving_statistics(model):
        raise KeyError
    before = stored(model)
    assert torch.equal(model(INPUTS), model(INPUTS))
    assert_same_state(model, before)
    assert "forward" not in vars(model[0])


@pytest.mark.parametrize("training", [True, False])
def test_moving_statistics_restore_the_mode(model, training):
    model.train(training)
    with moving_statistics(model):
        pass
    assert model[0].training is training


def test_moving_statistics_do_not_move_on_a_single_value(model):
    before = stored(model)
    plain = model(INPUTS[:1])
    with moving_statistics(model):
        assert torch.equal(model(INPUTS[:1]), plain)
        assert model[0].training
    assert_same_state(model, before)


def test_batch_statistics_survive_moving_ones(model):
    use_batch_statistics(model)
    expected = model(INPUTS)
    with moving_statistics(model):
        model(INPUTS + 5)
    assert torch.equal(model(INPUTS), expected)


def test_a_copy_with_batch_statistics_has_its_own(model):
    use_batch_statistics(model)
    twin = copy.deepcopy(model)
    twin[0].running_mean.zero_()
    assert not torch.equal(twin(INPUTS[:1]), model(INPUTS[:1]))


def test_layers_without_batch_norm_are_not_touched():
    model = nn.Sequential(nn.LayerNorm(3), nn.GroupNorm(1, 3))
    expected = model(INPUTS)
    use_batch_statistics(model)
    with moving_statistics(model):
        assert torch.equal(model(INPUTS), expected)
    assert torch.equal(model(INPUTS), expected)


class LlamaRMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))


class NormalizedLinear(LlamaRMSNorm):
    pass


def test_norm_layers_are_known_by_type_or_name():
    layers = [nn.BatchNorm2d(1), nn.InstanceNorm1d(1), nn.LayerNorm(1), nn.RMSNorm(1)]
    assert all(is_norm_layer(layer) for layer in layers)
    assert is_norm_layer(LlamaRMSNorm())
    assert not is_norm_layer(NormalizedLinear())
    assert not is_norm_layer(nn.Conv1d(1, 1, 1))


def test_norm_parameters_come_once_and_in_order():
    shared = nn.LayerNorm(3)
    model = nn.Sequential(nn.BatchNorm1d(3), shared, nn.Linear(3, 3), shared, LlamaRMSNorm())
    expected = [model[0].weight, model[0].bias, shared.weight, shared.bias, model[4].weight]
    found = norm_parameters(model)
    assert [id(one) for one in found] == [id(one) for one in expected]


def test_norm_layers_without_parameters_have_none():
    assert norm_parameters(nn.Sequential(nn.BatchNorm1d(3, affine=False))) == []


def test_a_model_uses_batch_statistics_when_told_or_when_it_has_no_others():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert not uses_batch_statistics(model)
    use_batch_statistics(model)
    assert uses_batch_statistics(model)
    assert uses_batch_statistics(copy.deepcopy(model))
    use_stored_statistics(model)
    assert not uses_batch_statistics(model)
    assert uses_batch_statistics(nn.BatchNorm1d(3, track_running_stats=False))


def test_robust_statistics_normalise_with_the_moved_ones_and_let_gradients_through():
    # Values 0 and 4: mean 2, variance 4. With a share of ½ the stored mean goes from 0 to 1 and
    # the variance from 1 to 2.5. ∂y₁/∂x₁ with y₁ = (x₁ - μ)/σ: μ moves by ¼ per unit of x₁, σ² by
    # ½·(x₁ - 2) = -1, so ∂y₁/∂x₁ = (1 - ¼)/σ - (x₁ - μ)·(-1)/(2σ³) = 0.75/σ - 1/(2σ³).
    layer = nn.BatchNorm1d(1, eps=0.0).eval()
    inputs = torch.tensor([[0.0], [4.0]], requires_grad=True)
    with robust_statistics(layer, 0.5):
        outputs = layer(inputs)
    outputs[0].sum().backward()

    width = 2.5**0.5
    assert outputs.flatten().tolist() == pytest.approx([-1 / width, 3 / width])
    assert (layer.running_mean.item(), layer.running_var.item()) == (1.0, 2.5)
    assert inputs.grad[0].item() == pytest.approx(0.75 / width - 1 / (2 * width**3))
    assert "forward" not in layer.__dict__


def test_robust_statistics_keep_scale_and_shift():
    layer = nn.BatchNorm2d(2).eval()
    nn.init.constant_(layer.weight, 3.0)
    nn.init.constant_(layer.bias, 1.0)
    inputs = torch.randn(4, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    with robust_statistics(layer, 0.0):
        given = layer(inputs)

    assert torch.allclose(given, layer(inputs), atol=1e-5)


def test_moving_statistics_take_another_momentum_for_a_while():
    layer = nn.BatchNorm1d(1).eval()
    with moving_statistics(layer, momentum=0.5):
        layer(torch.tensor([[0.0], [4.0]]))

    assert (layer.running_mean.item(), layer.momentum) == (1.0, 0.1)
