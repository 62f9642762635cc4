import copy
import math

import pytest
import torch
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.methods import Tent
from attakit.queries import Allowance
from attakit.testing import tiny_batch, tiny_classifier
from one_layer import batch_of, one_layer

# Two samples (1, 2) and (3, 0): each feature has mean 2 or 1 and variance 1, so batch norm gives
# x̂ = (-1, 1) and (1, -1). With scale γ = 1 and shift β = 0 these are the logits z.
# For two classes ∂H/∂z₁ = p₁p₂(z₂ - z₁) and ∂H/∂z₂ is its negative. For the first sample
# p₁ = 1/(1 + e²), z₂ - z₁ = 2, so g = 2·p₁p₂ = 2e²/(1 + e²)² ≈ 0.21; for the second it is -g.
# ∂L/∂γ₁ = mean(g·(-1), (-g)·1) = -g, ∂L/∂γ₂ = mean((-g)·1, g·(-1)) = -g,
# ∂L/∂β = mean(g, -g) = 0. Lowering the entropy enlarges both scales alike.
INPUTS = torch.tensor([[1.0, 2.0], [3.0, 0.0]])
G = 2 * math.e**2 / (1 + math.e**2) ** 2


def test_one_update_follows_the_gradient_worked_out_by_hand():
    method = Tent(one_layer(2), lr=0.5, momentum=0.0)
    step = method.step(batch_of(INPUTS), Allowance(0))
    norm = method.model.model[0]
    assert torch.allclose(norm.weight, torch.full((2,), 1 + 0.5 * G))
    assert torch.allclose(norm.bias, torch.zeros(2), atol=1e-7)
    assert torch.allclose(step.prediction.logits, torch.tensor([[-1.0, 1.0], [1.0, -1.0]]))
    share = 1 / (1 + math.e**2)
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert step.numbers["loss"] == pytest.approx(entropy)


def test_momentum_carries_over_to_the_next_batch():
    plain, heavy = (Tent(one_layer(2), lr=0.5, momentum=m) for m in (0.0, 0.5))
    for method in (plain, heavy):
        method.step(batch_of(INPUTS), Allowance(0))
    gradient = torch.stack([method.model.model[0].weight.detach().clone() for method in (plain,)])
    for method in (plain, heavy):
        method.step(batch_of(INPUTS), Allowance(0))
    # The second gradient is the same for both; the heavy one adds half of the first.
    moved = heavy.model.model[0].weight - plain.model.model[0].weight
    assert torch.allclose(moved, torch.full((2,), 0.5 * 0.5 * G), atol=1e-6)
    assert torch.allclose(gradient, torch.full((1, 2), 1 + 0.5 * G))


def test_entropy_falls_along_the_stream():
    method = Tent(tiny_classifier(), lr=0.1)
    losses = [method.step(tiny_batch(0), Allowance(0)).numbers["loss"] for _ in range(20)]
    assert losses[-1] < losses[0]


def test_only_scales_and_shifts_of_norm_layers_change():
    model = tiny_classifier()
    method = Tent(model, lr=0.1)
    for step in range(3):
        method.step(tiny_batch(step), Allowance(0))
    before, after = model.state_dict(), method.model.model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"1.weight", "1.bias"}


def test_several_updates_answer_from_the_first_pass():
    once, thrice = Tent(tiny_classifier(), lr=0.1), Tent(tiny_classifier(), lr=0.1, updates=3)
    batch = tiny_batch()
    answers = [method.step(batch, Allowance(0)).prediction.logits for method in (once, thrice)]
    assert torch.equal(*answers)
    assert not torch.equal(once.model.model[1].weight, thrice.model.model[1].weight)


@pytest.mark.parametrize("updates", [1, 10])
@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8), nn.GroupNorm(2, 8), nn.LayerNorm(8)])
def test_updates_are_those_of_a_loop_written_by_hand(norm, updates):
    model = nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 3))
    plain = copy.deepcopy(model).train()  # batch statistics, as in the paper
    velocity = [torch.zeros(8), torch.zeros(8)]
    method = Tent(model, lr=0.1, momentum=0.9, updates=updates)
    for number in range(3):
        batch = tiny_batch(number)
        before = plain(batch.inputs).detach()
        for _ in range(updates):
            shares = plain(batch.inputs).softmax(dim=1)
            loss = -(shares * shares.log()).sum(dim=1).mean()
            weights = [plain[1].weight, plain[1].bias]
            gradients = torch.autograd.grad(loss, weights)
            velocity = [0.9 * old + new for old, new in zip(velocity, gradients, strict=True)]
            with torch.no_grad():
                for weight, step in zip(weights, velocity, strict=True):
                    weight -= 0.1 * step
        given = method.step(batch, Allowance(0)).prediction.logits
        torch.testing.assert_close(given, before, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(method.model.model[1].weight, plain[1].weight)
        torch.testing.assert_close(method.model.model[1].bias, plain[1].bias)


def test_blended_statistics_are_those_of_the_answering_pass_for_every_update():
    method = Tent(tiny_classifier(), lr=0.1, updates=3, norm="blended")
    stream = method.model.stream
    for number in range(4):
        expected = method.predict(tiny_batch(number).inputs).logits
        latest = [each.clone() for each in stream.layers[0].latest]
        given = method.step(tiny_batch(number), Allowance(0)).prediction.logits
        assert torch.equal(given, expected)
        kept = stream.layers[0].mean, stream.layers[0].variance, stream.layers[0].count
        assert all(map(torch.equal, [each[:1] for each in kept], latest))
    assert stream.share.seen == 32  # also passes with gradients find the share


def test_blended_statistics_count_every_sample_of_a_window_once():
    method = Tent(tiny_classifier(), norm="blended", window=8)
    for number in range(16):
        method.step(tiny_batch(number, size=2), Allowance(0))
    assert float(method.model.stream.layers[0].count) == 32


def test_it_asks_nothing():
    assert Tent(tiny_classifier()).step(tiny_batch(), Allowance(100)).queries == ()


def test_a_model_without_norm_layers_is_refused_with_advice():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    with pytest.raises(ModelError, match="no normalisation layers"):
        Tent(model)


@pytest.mark.parametrize("norm", [nn.GroupNorm(2, 8), nn.LayerNorm(8)])
def test_other_norm_layers_train_too(norm):
    method = Tent(nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 3)), lr=0.1)
    before = method.model.model[1].weight.detach().clone()
    method.step(tiny_batch(), Allowance(0))
    assert not torch.equal(before, method.model.model[1].weight)


def test_one_logit_counts_as_two_classes():
    method = Tent(tiny_classifier(classes=1), lr=0.1)
    step = method.step(tiny_batch(), Allowance(0))
    assert step.prediction.logits.shape == (8, 2)
    assert step.numbers["loss"] <= math.log(2) + 1e-6


@pytest.mark.parametrize("size", [0, 1])
def test_tiny_batches_are_answered(size):
    method = Tent(tiny_classifier())
    assert method.step(tiny_batch(size=size), Allowance(0)).prediction.logits.shape == (size, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "Tent: lr must be greater than 0, got 0"),
        ({"momentum": 1.5}, "Tent: momentum must be at least 0 and at most 1"),
        ({"updates": 0}, "Tent: updates must be at least 1, got 0"),
        ({"updates": 1.5}, "Tent: updates must be a whole number, got 1.5"),
        ({"lr": "fast"}, "Tent: lr must be a number, got 'fast'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        Tent(tiny_classifier(), **settings)


def test_a_run_that_goes_on_with_another_learning_rate_uses_it():
    before, after = Tent(one_layer(2), lr=0.5), Tent(one_layer(2), lr=0.25)
    before.step(batch_of(INPUTS), Allowance(0))

    after.load_state_dict(before.state_dict())

    assert after.optimizer.param_groups[0]["lr"] == 0.25
    (first, second) = (list(each.optimizer.state.values()) for each in (before, after))
    assert torch.equal(first[0]["momentum_buffer"], second[0]["momentum_buffer"])


def test_the_first_step_of_adam_has_the_length_of_the_learning_rate():
    # Adam divides the gradient by its own size: both scales grow by lr, whatever G is.
    method = Tent(one_layer(2), lr=0.5, optimizer="adam")
    method.step(batch_of(INPUTS), Allowance(0))
    assert torch.allclose(method.model.model[0].weight, torch.full((2,), 1.5), atol=1e-4)


def test_unknown_optimisers_and_a_first_moment_without_end_are_refused():
    with pytest.raises(SettingError, match="Tent: optimizer must be"):
        Tent(tiny_classifier(), optimizer="lion")
    with pytest.raises(SettingError, match=r"Tent: momentum must be .* got 1"):
        Tent(tiny_classifier(), optimizer="adam", momentum=1.0)
