"""EATTA: its question, its balanced step, and answers that come late or never."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from attakit.engine import run
from attakit.errors import DoesNotApply, ModelError, SettingError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, Skipping
from attakit.methods import EATTA
from attakit.methods.eatta import head_logits
from attakit.nn.classifier import Classifier
from attakit.queries import Allowance, Answer
from attakit.randomness import generator
from attakit.records import Rows
from attakit.select import LabelRate
from attakit.select.sensitivity import Sensitivity
from attakit.testing import check_method, tiny_batch, tiny_classifier
from attakit.testing.methods import answers_to
from one_layer import batch_of, drawn, one_layer

# The step, worked out with numpy on batch norm followed by the identity, so that z = γ x̂ + β:
#   ∂H/∂z_j = -p_j (log p_j + H)                     ∂CE/∂z_j = p_j - 1[j = label]
#   g₁, g₂: lengths of the gradients of the mean entropy and of the labelled loss
#   w₁ = 2 g₂ / (g₁ + g₂), w₂ = 2 g₁ / (g₁ + g₂), then w ← 0.8 w + 0.2 w(now)
CLASSES, START, LR = 3, 2.0, 0.05
MARGIN = 0.4 * math.log(CLASSES)


class ByHand:
    """γ and β, and the smoothed weights of the two losses."""

    def __init__(self):
        self.weights = np.stack([np.full(CLASSES, START), np.zeros(CLASSES)])
        self.balance = None

    def step(self, inputs, place, label):
        inputs = inputs.astype(np.float64)
        normal = (inputs - inputs.mean(0)) / inputs.std(0)
        logits = self.weights[0] * normal + self.weights[1]
        shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        entropy = -(shares * np.log(shares)).sum(1)
        kept = entropy < MARGIN
        if place is not None:
            kept[place] = False
        assert kept.any()
        slope = -shares * (np.log(shares) + entropy[:, None])
        lowered = np.stack([(slope * normal)[kept].mean(0), slope[kept].mean(0)])
        if place is None:
            self.weights = self.weights - LR * lowered
            return
        error = shares[place] - np.eye(CLASSES)[label]
        labelled = np.stack([error * normal[place], error])
        lengths = np.linalg.norm(lowered), np.linalg.norm(labelled)
        now = 2 * np.array([lengths[1], lengths[0]]) / sum(lengths)
        self.balance = now if self.balance is None else 0.8 * self.balance + 0.2 * now
        self.weights = self.weights - LR * (self.balance[0] * lowered + self.balance[1] * labelled)


def plain(**settings):
    return EATTA(one_layer(CLASSES, START), **{"lr": LR, "momentum": 0.0} | settings)


def learned(method):
    norm = method.model.model[0]
    return np.stack([norm.weight.detach().numpy(), norm.bias.detach().numpy()])


def test_label_and_entropy_share_a_step_with_smoothed_weights():
    method, expected = plain(), ByHand()

    for step in range(3):
        inputs = drawn(step, 12)
        (query,) = method.step(batch_of(inputs, step), Allowance(9)).queries
        method.learn([Answer(query, 1, "me")])
        expected.step(inputs, int(query.sample.split("-")[1]), 1)
        assert learned(method) == pytest.approx(expected.weights, abs=1e-5)

    assert method.balance == pytest.approx(expected.balance, abs=1e-5)


def test_without_a_label_by_the_next_batch_only_the_entropy_is_lowered():
    method, expected = plain(), ByHand()
    (query,) = method.step(batch_of(drawn(0, 12), 0), Allowance(9)).queries

    assert method.learn([]).updates == 0  # the answer may still come
    before = method.predict(torch.as_tensor(drawn(1, 12))).logits
    given = method.step(batch_of(drawn(1, 12), 1), Allowance(0)).prediction.logits

    assert torch.equal(given, before)  # answered first
    expected.step(drawn(0, 12), None, None)
    assert learned(method) == pytest.approx(expected.weights, abs=1e-5)
    late = method.learn([Answer(query, 1, "me")])
    assert {"entropy", "labelled_loss"} <= late.numbers.keys()  # joins the step of batch 1


def test_a_skipped_question_and_a_spent_budget_do_not_hold_up_the_update():
    method, expected = plain(), ByHand()
    (query,) = method.step(batch_of(drawn(0, 12), 0), Allowance(9)).queries

    assert method.learn([Answer(query, None, "me")]).updates == 1
    assert method.step(batch_of(drawn(1, 12), 1), Allowance(0)).queries == ()
    assert method.learn([]).updates == 1
    expected.step(drawn(0, 12), None, None)
    expected.step(drawn(1, 12), None, None)
    assert learned(method) == pytest.approx(expected.weights, abs=1e-5)


def test_a_label_counts_in_full_where_no_sample_is_reliable():
    method = plain(reliable_share=0.0)
    (query,) = method.step(batch_of(drawn(0, 12)), Allowance(9)).queries

    assert method.learn([Answer(query, 1, "me")]).numbers["labelled_weight"] == 1
    assert method.balance is None


def test_the_question_is_the_sample_whose_answer_the_noise_changes_most():
    # The head is the identity, so noise on the features is noise on the logits.
    method, batch = plain(noise=0.5, seed=3), batch_of(drawn(0, 12))
    step = method.step(batch, Allowance(1))
    noise = generator(3, "feature noise", 0).normal(scale=0.5, size=(12, CLASSES))
    logits = step.prediction.logits.double().numpy()
    before, after = (
        np.exp(each) / np.exp(each).sum(1, keepdims=True) for each in (logits, logits + noise)
    )
    own = logits.argmax(1)
    changes = np.abs(before - after)[np.arange(12), own]

    assert step.queries[0].sample == batch.samples[changes.argmax()]


def test_a_class_asked_about_lately_passes_if_its_score_is_below_the_one_it_was_asked_with():
    logits = torch.eye(3)[[0, 0, 1, 2]]
    rows = Rows(tuple("abcd"), logits, logits, torch.ones(4))
    nothing = rows.take([])
    scores = {"a": 0.9, "b": 0.8, "c": 0.5, "d": 0.1}

    def chosen(*recent, **asked):
        return Sensitivity(scores, asked, recent).select(rows, nothing, 4, 0).samples

    assert chosen() == ("a", "b", "c", "d")
    assert chosen(0, **{"0": 0.85}) == ("a", "b", "c", "d")  # surprises more than last time
    assert chosen(0, **{"0": 0.95}) == ("c", "d", "a", "b")
    assert chosen(1, **{"0": 0.95}) == ("a", "b", "c", "d")  # class 0 was asked about long ago
    assert chosen(0, 1, **{"0": 0.95}) == ("d", "a", "b", "c")
    assert chosen(0, 1, 2, **{"0": 1}) == ("a", "b", "c", "d")  # no other class: the highest


def test_it_asks_once_per_batch_and_never_beyond_the_budget():
    def asked(budget, **settings):
        labels = dict.fromkeys((f"{n}-{k}" for n in range(6) for k in range(8)), 0)
        ledger = Ledger(Budget(budget))
        batches = [tiny_batch(step) for step in range(6)]
        run(batches, EATTA(tiny_classifier(), **settings), KnownLabels(labels), ledger)
        return ledger.received

    assert asked(99) == 6
    assert asked(4) == 4
    assert asked(99, rate=LabelRate(per_batch=2, first=0)) == 12
    assert asked(99, rate=LabelRate(per_1000=500, first=0)) == 24


def test_the_newest_labels_can_be_kept_and_trained_on_again():
    method = EATTA(tiny_classifier(), labelled_capacity=2)
    for step in range(4):
        method.learn(answers_to(method.step(tiny_batch(step), Allowance(1)).queries))

    assert [sample[0] for sample in method.labelled_anchors.rows.samples] == ["2", "3"]
    method.step(tiny_batch(4), Allowance(0))
    assert "labelled_loss" in method.learn([]).numbers


def test_forgotten_samples_are_gone_from_everything_that_is_kept():
    method = EATTA(tiny_classifier(), labelled_capacity=9)
    method.learn(answers_to(method.step(tiny_batch(0), Allowance(1)).queries))
    (open_query,) = method.step(tiny_batch(1), Allowance(1)).queries
    method.forget([*tiny_batch(0).samples, *tiny_batch(1).samples])

    assert len(method.latest) == len(method.kept) == len(method.waiting) == 0
    assert method.learn(answers_to([open_query])).updates == 0


@pytest.mark.parametrize(
    "oracle", [lambda o: Delayed(o, rounds=2), lambda o: Skipping(o, rate=0.5)]
)
def test_late_and_missing_answers_are_no_trouble(oracle):
    labels = dict.fromkeys((f"{n}-{k}" for n in range(6) for k in range(8)), 0)
    method = EATTA(tiny_classifier(), lr=0.1)
    ledger = Ledger(Budget(6))
    run([tiny_batch(n) for n in range(6)], method, oracle(KnownLabels(labels)), ledger)

    assert ledger.received > 0
    assert method.predict(tiny_batch(9).inputs).logits.isfinite().all()


@pytest.mark.parametrize(
    "settings",
    [
        {"labelled_capacity": 3, "batch_size": 2},
        {"reliable_share": 1.0, "lr": 0.1},
        {"rate": LabelRate(per_1000=300)},
    ],
)
def test_it_keeps_its_promises_with_other_settings(settings):
    check_method(lambda model: EATTA(model, **settings))


@pytest.mark.parametrize("head", [nn.Linear(4, 3), nn.Conv2d(4, 3, 1), nn.Linear(4, 1)])
def test_the_head_answers_features_as_the_model_does(head):
    shape = (2, 4, 1, 1) if isinstance(head, nn.Conv2d) else (2, 4)
    model = Classifier(nn.Sequential(nn.Identity(), head, nn.Flatten()), features="1")
    answer = model(torch.randn(shape))

    assert torch.allclose(head_logits(model, answer.features), answer.logits, atol=1e-6)


def test_it_does_not_apply_to_models_without_norm_layers_or_a_linear_head():
    with pytest.raises(DoesNotApply, match="no normalisation layers"):
        EATTA(nn.Sequential(nn.Linear(4, 3)))
    odd = Classifier(tiny_classifier(), features="2")
    with pytest.raises(DoesNotApply, match="input of a ReLU"):
        EATTA(odd).step(tiny_batch(), Allowance(1))


def test_a_model_that_diverged_is_reported():
    method = plain()
    nn.init.constant_(method.model.model[0].weight, math.nan)
    with pytest.raises(ModelError, match="finite"):
        method.step(batch_of(drawn(0, 12)), Allowance(1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 0),
        ("noise", 0),
        ("reliable_share", 2),
        ("balance_momentum", 2),
        ("labelled_capacity", -1),
    ],
)
def test_wrong_settings_are_refused(name, value):
    with pytest.raises(SettingError, match=f"EATTA: {name}"):
        EATTA(tiny_classifier(), **{name: value})
