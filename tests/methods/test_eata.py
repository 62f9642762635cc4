import math

import numpy as np
import pytest
import torch
from torch import nn

from attakit.errors import ModelError, SettingError, StateError
from attakit.methods import EATA, Tent
from attakit.methods.eata import redundancy_margin
from attakit.queries import Allowance
from attakit.testing import check_method, tiny_batch, tiny_classifier
from one_layer import batch_of, drawn, one_layer

# The paper's update (Niu et al. 2022), worked out with numpy on batch norm followed by the
# identity, so that the logits are z = γ x̂ + β:
#   ∂H/∂z_j = -p_j (log p_j + H)                      ∂CE/∂z_j = p_j - 1[j = own answer]
#   ∂L/∂γ_j = mean over kept of e^{E₀-H} ∂H/∂z_j x̂_j + 2 α F_j (γ_j - γ₀_j); for β without x̂
#   F = mean over batches of 64 of (mean over the batch of ∂CE/∂z_j x̂_j)²
CLASSES, START, LR, MOMENTUM, ALPHA = 3, 2.0, 0.05, 0.9, 20.0
E0 = 0.4 * math.log(CLASSES)


def normalised(inputs):
    inputs = inputs.astype(np.float64)
    return (inputs - inputs.mean(0)) / inputs.std(0)


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def fisher_by_hand(inputs):
    squares = []
    for start in range(0, len(inputs), 64):
        normal = normalised(inputs[start : start + 64])
        shares = softmax(START * normal)
        error = shares - np.eye(CLASSES)[shares.argmax(1)]
        squares.append(np.stack([(error * normal).mean(0), error.mean(0)]) ** 2)
    return np.mean(squares, axis=0)


class ByHand:
    """γ and β, their velocity, and the moving average of probabilities."""

    def __init__(self, fisher):
        self.fisher = fisher
        self.origin = np.stack([np.full(CLASSES, START), np.zeros(CLASSES)])
        self.weights = self.origin.copy()
        self.velocity = np.zeros_like(self.weights)
        self.average = None

    def step(self, inputs, margin):
        normal = normalised(inputs)
        shares = softmax(self.weights[0] * normal + self.weights[1])
        entropy = -(shares * np.log(shares)).sum(1)
        reliable = entropy < E0
        kept = reliable & self.is_new(shares, margin)
        mean = shares[kept].mean(0)
        self.average = mean if self.average is None else 0.9 * self.average + 0.1 * mean
        slope = -shares * (np.log(shares) + entropy[:, None]) * np.exp(E0 - entropy)[:, None]
        gradient = np.stack([(slope * normal)[kept].mean(0), slope[kept].mean(0)])
        gradient += 2 * ALPHA * self.fisher * (self.weights - self.origin)
        self.velocity = MOMENTUM * self.velocity + gradient
        self.weights = self.weights - LR * self.velocity
        return reliable.sum(), kept.sum()

    def is_new(self, shares, margin):
        if self.average is None:
            return np.ones(len(shares), dtype=bool)
        lengths = np.linalg.norm(shares, axis=1) * np.linalg.norm(self.average)
        return np.abs(shares @ self.average / lengths) < margin


def weights_of(method):
    norm = method.model.model[0]
    return torch.stack([norm.weight, norm.bias]).detach().double().numpy()


def test_two_batches_follow_the_update_worked_out_by_hand():
    source = drawn(0, 70)
    by_hand = ByHand(fisher_by_hand(source))
    method = EATA(
        one_layer(CLASSES, START),
        lr=LR,
        momentum=MOMENTUM,
        fisher_alpha=ALPHA,
        redundancy_margin=0.6,
        source_inputs=torch.as_tensor(source),
    )
    np.testing.assert_allclose(torch.stack(method.penalty.fisher), by_hand.fisher, rtol=1e-4)
    filtered = []
    for number in (1, 2, 3):
        inputs = drawn(number, 24)
        numbers = method.step(batch_of(inputs, number), Allowance(0)).numbers
        reliable, kept = by_hand.step(inputs, margin=0.6)
        assert (numbers["reliable"], numbers["kept"]) == (reliable, kept)
        filtered.append((24 - reliable, reliable - kept))
        np.testing.assert_allclose(method.average, by_hand.average, rtol=1e-4)
        np.testing.assert_allclose(weights_of(method), by_hand.weights, rtol=1e-4, atol=1e-5)
    # Both filters had work to do, but for the first batch, which nothing came before.
    assert all(unreliable > 0 for unreliable, _ in filtered)
    assert [redundant > 0 for _, redundant in filtered] == [False, True, True]


def test_at_most_so_many_source_inputs_count():
    source = torch.as_tensor(drawn(0, 70))
    few = EATA(one_layer(CLASSES, START), source_inputs=source, fisher_samples=10)
    np.testing.assert_allclose(
        torch.stack(few.penalty.fisher), fisher_by_hand(drawn(0, 70)[:10]), rtol=1e-4
    )


@pytest.mark.parametrize(
    "settings", [{}, {"source_inputs": torch.as_tensor(drawn(0, 70)), "fisher_alpha": 0}]
)
def test_without_source_inputs_or_weight_there_is_no_regulariser(settings):
    method, by_hand = (
        EATA(one_layer(CLASSES, START), lr=LR, **settings),
        ByHand(np.zeros((2, CLASSES))),
    )
    assert len(method.penalty) == 0
    for number in (1, 2):
        method.step(batch_of(drawn(number, 24), number), Allowance(0))
        by_hand.step(drawn(number, 24), margin=redundancy_margin(CLASSES))
    np.testing.assert_allclose(weights_of(method), by_hand.weights, rtol=1e-4, atol=1e-5)


def test_the_regulariser_holds_the_weights_back():
    source, batch = torch.as_tensor(drawn(0, 70)), batch_of(drawn(1, 24))
    moved = {}
    for alpha in (0.0, 500.0):
        method = EATA(one_layer(CLASSES, START), lr=LR, fisher_alpha=alpha, source_inputs=source)
        for _ in range(20):
            method.average = None  # so that the same samples are kept every time
            method.step(batch, Allowance(0))
        moved[alpha] = np.abs(weights_of(method)[0] - START).sum()
    assert moved[500.0] < 0.5 * moved[0.0]


def test_margins_follow_the_number_of_classes():
    # The paper's own values, for CIFAR-10 and ImageNet.
    assert redundancy_margin(10) == pytest.approx(0.4)
    assert redundancy_margin(1000) == pytest.approx(0.05)
    assert redundancy_margin(2) <= 1
    # E₀ = 0.4 ln C: logits with an entropy of about 0.5 are reliable among 7 classes, not among 3.
    for classes, reliable in ((3, 0.0), (7, 8.0)):
        model = tiny_classifier(classes=classes)
        with torch.no_grad():
            model[3].weight.zero_()
            model[3].bias.fill_(-30.0)
            model[3].bias[:2] = torch.tensor([0.0, -1.4])
        entropy = 0.4948  # of probabilities 0.802 and 0.198
        assert 0.4 * math.log(3) < entropy < 0.4 * math.log(7)
        assert EATA(model).step(tiny_batch(), Allowance(0)).numbers["reliable"] == reliable


def test_nothing_happens_where_nothing_is_kept():
    method = EATA(tiny_classifier(), lr=0.1, reliable_share=0.0)
    before = method.model.model[1].weight.detach().clone()
    step = method.step(tiny_batch(), Allowance(0))
    assert step.numbers == {"reliable": 0.0, "kept": 0.0}
    assert torch.equal(method.model.model[1].weight, before)
    assert method.average is None
    assert not method.optimizer.state


def test_samples_like_the_earlier_ones_are_left_out():
    method = EATA(tiny_classifier(), reliable_share=1.0, redundancy_margin=0.3)
    assert method.step(tiny_batch(0), Allowance(0)).numbers["kept"] == 8
    average = method.average.clone()
    # All answers of a fresh model are alike, so their cosines are near one.
    assert method.step(tiny_batch(0), Allowance(0)).numbers["kept"] == 0
    assert torch.equal(method.average, average)


def training(model, **settings):
    chosen = {"lr": 0.1, "reliable_share": 1.0, "redundancy_margin": 1.0, "fisher_alpha": 1.0}
    return EATA(model, source_inputs=tiny_batch(50).inputs, **chosen | settings)


def test_it_keeps_the_promises_of_a_method_while_it_trains():
    check_method(training)
    check_method(lambda model: training(model, redundancy_margin="auto"))


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(8), nn.GroupNorm(2, 8), nn.LayerNorm(8)])
def test_every_kind_of_norm_layer_trains(norm):
    model = nn.Sequential(nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, 3))
    method = training(model)
    method.step(tiny_batch(), Allowance(0))
    changed = {
        name
        for name, before in model.state_dict().items()
        if not torch.equal(before, method.model.model.state_dict()[name])
    }
    assert changed == {"1.weight", "1.bias"}


def test_what_trains_is_what_tent_trains():
    method, tent = EATA(tiny_classifier()), Tent(tiny_classifier())
    for one in (method, tent):
        trains = [parameter for parameter in one.model.parameters() if parameter.requires_grad]
        assert [id(each) for each in one.optimizer.param_groups[0]["params"]] == [
            id(each) for each in trains
        ]
        assert len(trains) == 2


def test_a_state_with_a_regulariser_needs_one():
    saved = training(tiny_classifier()).state_dict()
    with pytest.raises(StateError, match="EATA: the saved penalty does not fit"):
        EATA(tiny_classifier()).load_state_dict(saved)


def test_a_model_without_norm_layers_is_refused():
    with pytest.raises(ModelError, match="no normalisation layers"):
        EATA(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "EATA: lr must be greater than 0, got 0"),
        ({"momentum": 2}, "EATA: momentum must be at least 0 and at most 1, got 2"),
        ({"reliable_share": 1.5}, "EATA: reliable_share must be at least 0 and at most 1"),
        ({"redundancy_margin": "some"}, "EATA: redundancy_margin must be a number, got 'some'"),
        ({"fisher_alpha": -1}, "EATA: fisher_alpha must be at least 0, got -1"),
        ({"fisher_samples": 0}, "EATA: fisher_samples must be at least 1, got 0"),
        ({"source_inputs": "photo"}, "EATA: source_inputs must be a tensor .* got 'photo'"),
        ({"source_inputs": torch.zeros(0, 4)}, r"EATA: source_inputs must .* got \(0, 4\)"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        EATA(tiny_classifier(), **settings)
