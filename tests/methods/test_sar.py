import math

import numpy as np
import pytest
import torch
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.methods import SAR
from attakit.methods.sar import reset_threshold
from attakit.nn import SmallCNN
from attakit.queries import Allowance
from attakit.testing import check_method, tiny_batch, tiny_classifier
from one_layer import batch_of, drawn, one_layer

# The paper's update (Niu et al. 2023), worked out with numpy on batch norm followed by the
# identity, so that the logits are z = γ x̂ + β and θ = (γ, β):
#   g(θ) = mean over samples of ∂H/∂z_j x̂_j for γ and ∂H/∂z_j for β, ∂H/∂z_j = -p_j (log p_j + H)
#   ε = ρ g₁/‖g₁‖ with g₁ over the samples with H(θ) < E₀
#   g₂ = g(θ + ε) over those of them with H(θ + ε) < E₀;  θ ← θ - η (momentum · v + g₂)
CLASSES, START, LR, MOMENTUM, RADIUS = 3, 2.0, 0.1, 0.9, 0.5
E0 = 0.4 * math.log(CLASSES)


def entropy_and_slopes(weights, normal):
    """H of every sample, and its gradient for γ and β."""
    powers = np.exp(weights[0] * normal + weights[1])
    shares = powers / powers.sum(1, keepdims=True)
    entropy = -(shares * np.log(shares)).sum(1)
    slope = -shares * (np.log(shares) + entropy[:, None])
    return entropy, np.stack([slope * normal, slope], axis=1)


class ByHand:
    """γ and β, their velocity, and the moving average of the second loss."""

    def __init__(self):
        self.weights = np.stack([np.full(CLASSES, START), np.zeros(CLASSES)])
        self.velocity = np.zeros_like(self.weights)
        self.average = None

    def step(self, inputs):
        normal = inputs.astype(np.float64)
        normal = (normal - normal.mean(0)) / normal.std(0)
        entropy, slopes = entropy_and_slopes(self.weights, normal)
        reliable = entropy < E0
        first = slopes[reliable].mean(0)
        ascent = RADIUS * first / np.sqrt((first**2).sum())
        entropy, slopes = entropy_and_slopes(self.weights + ascent, normal)
        kept = reliable & (entropy < E0)
        loss = entropy[kept].mean()
        self.average = loss if self.average is None else 0.9 * self.average + 0.1 * loss
        self.velocity = MOMENTUM * self.velocity + slopes[kept].mean(0)
        self.weights = self.weights - LR * self.velocity
        return reliable.sum(), kept.sum(), loss


def weights_of(method):
    norm = method.model.model[0]
    return torch.stack([norm.weight, norm.bias]).detach().double().numpy()


@pytest.mark.parametrize("updates", [1, 3])
def test_the_two_step_update_is_the_one_worked_out_by_hand(updates):
    method = SAR(
        one_layer(CLASSES, START),
        lr=LR,
        momentum=MOMENTUM,
        radius=RADIUS,
        reset_below=0,
        updates=updates,
    )
    by_hand, dropped = ByHand(), []
    for number in (1, 2):
        inputs = drawn(number)
        numbers = method.step(batch_of(inputs, number), Allowance(0)).numbers
        done = [by_hand.step(inputs) for _ in range(updates)]
        reliable, kept, loss = done[0]
        assert numbers["kept"] == kept
        assert numbers["loss"] == pytest.approx(loss, rel=1e-4)
        dropped += [(24 - reliable, reliable - kept)]
        np.testing.assert_allclose(weights_of(method), by_hand.weights, rtol=1e-4, atol=1e-5)
        assert method.average == pytest.approx(by_hand.average, rel=1e-4)
    # Both filters had work to do.
    assert all(before > 0 for before, _ in dropped)
    assert any(after > 0 for _, after in dropped)


def test_a_radius_of_zero_is_plain_descent_on_reliable_samples():
    method = SAR(one_layer(CLASSES, START), lr=LR, momentum=0.0, radius=0.0, reset_below=0)
    normal = drawn(1).astype(np.float64)
    normal = (normal - normal.mean(0)) / normal.std(0)
    start = np.stack([np.full(CLASSES, START), np.zeros(CLASSES)])
    entropy, slopes = entropy_and_slopes(start, normal)
    method.step(batch_of(drawn(1)), Allowance(0))
    expected = start - LR * slopes[entropy < E0].mean(0)
    np.testing.assert_allclose(weights_of(method), expected, rtol=1e-4, atol=1e-5)


def untouched(method, model):
    """Whether a step on a batch leaves weights, momentum and average alone."""
    before = method.average, dict(method.optimizer.state)
    step = method.step(batch_of(drawn(1)), Allowance(0))
    assert step.numbers == {"kept": 0.0, "reset": 0.0}
    same = (method.average, dict(method.optimizer.state)) == before
    mine, theirs = method.model.model.state_dict(), model.state_dict()
    return same and all(torch.equal(mine[name], theirs[name]) for name in theirs)


def test_nothing_happens_where_no_sample_is_reliable():
    model = one_layer(CLASSES, START)
    assert untouched(SAR(model, lr=LR, reliable_share=0.0), model)


def test_nothing_happens_where_the_ascent_leaves_no_sample_reliable():
    # Only the very surest samples count, and the ascent takes their certainty away.
    model, margin = one_layer(CLASSES, START), 0.05
    normal = drawn(1).astype(np.float64)
    normal = (normal - normal.mean(0)) / normal.std(0)
    start = np.stack([np.full(CLASSES, START), np.zeros(CLASSES)])
    entropy, slopes = entropy_and_slopes(start, normal)
    reliable = entropy < margin * math.log(CLASSES)
    first = slopes[reliable].mean(0)
    radius = 2.0
    ascended, _ = entropy_and_slopes(start + radius * first / np.sqrt((first**2).sum()), normal)
    assert reliable.any()
    assert (ascended[reliable] > margin * math.log(CLASSES)).all()
    assert untouched(SAR(model, lr=LR, reliable_share=margin, radius=radius), model)


def test_recovery_brings_back_weights_momentum_and_average():
    model = one_layer(CLASSES, START)
    method, by_hand = SAR(model, lr=LR, radius=RADIUS, reset_below=0.0), ByHand()
    for number in (1, 2):
        method.step(batch_of(drawn(number)), Allowance(0))
        by_hand.step(drawn(number))
    # The next loss takes the average below this, and no single loss of this model is below it.
    loss = by_hand.step(drawn(3))[2]
    assert loss > 0.05
    method.reset_below = by_hand.average + 1e-3
    assert method.step(batch_of(drawn(3)), Allowance(0)).numbers["reset"] == 1
    np.testing.assert_array_equal(weights_of(method), [[START] * CLASSES, [0.0] * CLASSES])
    assert method.average is None
    assert not method.optimizer.state
    # The average starts afresh with the next loss, so one collapse is one reset.
    method.reset_below = 0.05
    fresh = ByHand()
    expected = fresh.step(drawn(4))[2]
    assert method.step(batch_of(drawn(4)), Allowance(0)).numbers["reset"] == 0
    assert method.average == pytest.approx(expected, rel=1e-4)
    np.testing.assert_allclose(weights_of(method), fresh.weights, rtol=1e-4, atol=1e-5)


def test_it_starts_over_as_soon_as_the_average_is_below_the_bound():
    method = SAR(one_layer(CLASSES, START), lr=LR, reset_below=10.0)
    for number in range(3):
        assert method.step(batch_of(drawn(number)), Allowance(0)).numbers["reset"] == 1
    np.testing.assert_array_equal(weights_of(method), [[START] * CLASSES, [0.0] * CLASSES])


def test_margins_follow_the_number_of_classes():
    assert reset_threshold(1000) == pytest.approx(0.2)  # the paper's, for ImageNet
    assert reset_threshold(10) == pytest.approx(0.2 / 3)
    # E₀ = 0.4 ln C: an entropy of 0.4948 is reliable among 7 classes, not among 3.
    for classes, kept in ((3, 0.0), (7, 8.0)):
        model = tiny_classifier(classes=classes)
        with torch.no_grad():
            model[3].weight.zero_()
            model[3].bias.fill_(-30.0)
            model[3].bias[:2] = torch.tensor([0.0, -1.4])
        assert SAR(model).step(tiny_batch(), Allowance(0)).numbers["kept"] == kept


def training(model, **settings):
    return SAR(model, **{"lr": 0.1, "reliable_share": 1.0, "reset_below": 0} | settings)


def test_it_keeps_the_promises_of_a_method_while_it_trains_and_recovers():
    check_method(training)
    check_method(lambda model: training(model, updates=2, reset_below=1.0))


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8), nn.GroupNorm(2, 8), nn.LayerNorm(8)])
def test_every_kind_of_norm_layer_trains(norm):
    model = nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 3))
    method = training(model)
    method.step(tiny_batch(), Allowance(0))
    after = method.model.model.state_dict()
    changed = {
        name for name, old in model.state_dict().items() if not torch.equal(old, after[name])
    }
    assert changed == {"1.weight", "1.bias"}


def test_the_last_block_stays_unless_told_otherwise():
    images = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    for left_out, blocks in ((0.25, {"block1", "block2"}), (0, {"block1", "block2", "block3"})):
        model = SmallCNN()
        method = training(model, left_out=left_out)
        method.step(batch_of(images), Allowance(0))
        after = method.model.model.state_dict()
        changed = {
            name for name, old in model.state_dict().items() if not torch.equal(old, after[name])
        }
        assert {name.split(".")[0] for name in changed} == blocks
        trains = [parameter for parameter in method.model.parameters() if parameter.requires_grad]
        assert len(method.optimizer.param_groups[0]["params"]) == len(trains) == 2 * len(blocks)


def test_several_updates_answer_from_the_first_pass():
    answers = [
        training(tiny_classifier(), updates=updates).step(tiny_batch(), Allowance(0)).prediction
        for updates in (1, 10)
    ]
    assert torch.equal(answers[0].logits, answers[1].logits)


def test_a_model_without_norm_layers_is_refused():
    with pytest.raises(ModelError, match="no normalisation layers"):
        SAR(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "SAR: lr must be greater than 0, got 0"),
        ({"momentum": 2}, "SAR: momentum must be at least 0 and at most 1, got 2"),
        ({"updates": 0}, "SAR: updates must be at least 1, got 0"),
        ({"radius": -1}, "SAR: radius must be at least 0, got -1"),
        ({"reliable_share": 1.5}, "SAR: reliable_share must be at least 0 and at most 1"),
        ({"left_out": 2}, "SAR: left_out must be at least 0 and at most 1, got 2"),
        ({"reset_below": "never"}, "SAR: reset_below must be a number, got 'never'"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        SAR(tiny_classifier(), **settings)


def test_a_model_that_diverges_at_the_worst_point_is_an_error_and_keeps_its_weights(monkeypatch):
    method = SAR(tiny_classifier(), reliable_share=1.0)
    before = [parameter.detach().clone() for parameter in method.trained]
    monkeypatch.setattr(method, "radius", math.inf)

    with pytest.raises(ModelError, match=r"SAR: the loss became nan"):
        method.step(tiny_batch(), Allowance(0))

    assert all(torch.equal(*pair) for pair in zip(method.trained, before, strict=True))
