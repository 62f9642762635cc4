"""CPATTA: who is asked, what the model labels itself, the two stages, and calibration."""

import numpy as np
import pytest
import torch
from torch import nn

from attakit.build.methods import build_method
from attakit.engine import run
from attakit.errors import SettingError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, Skipping
from attakit.methods import CPATTA
from attakit.methods.cpatta import FeatureShift
from attakit.queries import Allowance, Answer, SampleId
from attakit.records import Batch
from attakit.select import LabelRate
from attakit.settings.experiment import MethodTable
from attakit.stream import ArraySamples
from attakit.testing import check_method, tiny_batch, tiny_classifier
from attakit.testing.methods import answers_to


def linear():
    """Logits are the inputs: the weight is the identity."""
    layer = nn.Linear(3, 3, bias=False)
    nn.init.eye_(layer.weight)
    return nn.Sequential(layer)


def batch_of(rows, step=0):
    inputs = torch.tensor(rows, dtype=torch.float32)
    return Batch(step, tuple(SampleId(f"{step}-{n}") for n in range(len(rows))), inputs)


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


# From the surest to the least sure.
ROWS = [[9, 0, 0], [0, 8, 0], [0, 0, 7], [6, 0, 0], [0, 2, 1], [0.2, 0.1, 0]]


def only(**settings):
    """Without momentum, one label and two pseudo-labels per batch."""
    rate = LabelRate(per_batch=1, first=0, at_drift=0)
    return CPATTA(linear(), **{"rate": rate, "pseudo_labels": 2, "momentum": 0.0} | settings)


def test_people_label_the_least_certain_and_the_model_the_most_certain():
    method = only()
    step = method.step(batch_of(ROWS), Allowance(9))

    assert [query.sample for query in step.queries] == ["0-5"]
    assert method.pseudo_labelled.rows.samples == ("0-0", "0-1")
    assert method.pseudo_labelled.rows.labels.tolist() == [0, 1]


def test_a_sample_that_is_asked_about_gets_no_label_of_the_model():
    method = only(pseudo_labels=6)
    method.step(batch_of(ROWS), Allowance(9))

    assert "0-5" not in method.pseudo_labelled.rows.samples
    assert len(method.pseudo_labelled) == 5


def test_the_certainty_of_the_source_model_chooses_and_the_present_model_labels():
    method = only()
    with torch.no_grad():  # the present model takes every class for the next one
        method.model.model[0].weight.copy_(torch.eye(3).roll(1, 0) * 0.1)
    method.step(batch_of(ROWS), Allowance(0))

    assert method.pseudo_labelled.rows.samples == ("0-0", "0-1")
    assert method.pseudo_labelled.rows.labels.tolist() == [1, 2]


def test_training_passes_over_peoples_labels_and_then_over_its_own():
    # z = W x, ∂CE/∂W = mean of (p - 1[label]) xᵀ, in two steps: lr on the label, then pseudo_lr.
    method = only(lr=0.5, pseudo_lr=0.25)
    (query,) = method.step(batch_of(ROWS), Allowance(9)).queries
    training = method.learn([Answer(query, 2, "me")])

    weight = np.eye(3)
    for places, labels, rate in (([5], [2], 0.5), ([0, 1], [0, 1], 0.25)):
        inputs = np.array(ROWS, dtype=float)[places]
        error = softmax(inputs @ weight.T) - np.eye(3)[labels]
        weight = weight - rate * error.T @ inputs / len(places)
    assert method.model.model[0].weight.detach().numpy() == pytest.approx(weight, abs=1e-6)
    assert training.updates == 2


def test_each_stage_passes_once_over_all_that_is_kept_with_a_new_optimizer():
    method = only(batch_size=2, pseudo_labels=3)
    updates = []
    for step in range(3):
        queries = method.step(batch_of(ROWS, step), Allowance(9)).queries
        updates.append(method.learn(answers_to(queries)).updates)

    # Labels 1, 2, 3 and pseudo-labels 3, 6, 9, in batches of two.
    assert updates == [1 + 2, 1 + 3, 2 + 5]


def test_nothing_trains_before_the_first_label_or_without_news():
    method = only()
    (query,) = method.step(batch_of(ROWS), Allowance(9)).queries

    assert method.learn([]).updates == 0
    assert method.learn([Answer(query, 1, "me")]).updates == 2
    assert method.learn([]).updates == 0
    method.step(batch_of(ROWS, 1), Allowance(0))
    assert method.learn([]).updates == 2  # new labels of its own


def test_pseudo_labels_are_bounded_in_number():
    method = only(pseudo_capacity=3)
    for step in range(4):
        method.step(batch_of(ROWS, step), Allowance(0))

    assert len(method.pseudo_labelled) == 3


def test_it_asks_three_per_batch_and_ten_at_first_and_where_the_features_turn():
    turned = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 1.0])
    draws = torch.Generator().manual_seed(0)
    batches = []
    for step in range(8):
        inputs = 5 * turned[step >= 6] + torch.rand(100, 3, generator=draws)
        batches.append(Batch(step, tuple(f"{step}-{n}" for n in range(100)), inputs))
    labels = {sample: 0 for batch in batches for sample in batch.samples}

    def counts(budget):
        method, ledger = CPATTA(linear()), Ledger(Budget(budget))
        asked = []
        for batch in batches:
            run([batch], method, KnownLabels(labels), ledger)
            asked.append(ledger.asked)
        return np.diff([0, *asked]).tolist()

    assert counts(99) == [10, 3, 3, 3, 3, 3, 10, 3]
    assert counts(20) == [10, 3, 3, 3, 1, 0, 0, 0]


def test_a_shift_is_a_signal_far_above_its_average():
    # Angles 0, 0, 0, 90, 90 degrees: signals 0, 0, 1, 0. The average at the third is 1/3.
    def seen(factor):
        shift = FeatureShift(factor=factor)
        turns = [[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 2
        return [shift.observe(torch.tensor([features])) for features in turns]

    assert seen(2.9) == [False, False, False, True, False]
    assert seen(3.1) == [False] * 5


def test_source_samples_set_the_thresholds_of_both_models():
    source = torch.tensor([[2.0, 0.0, 0.0]] * 20)
    method = only(source_inputs=source, source_labels=torch.zeros(20, dtype=torch.long))
    numbers = method.step(batch_of(ROWS), Allowance(0)).numbers

    share = softmax(np.array([[2.0, 0, 0]]))[0, 0]
    assert numbers["threshold"] == pytest.approx(share)
    assert numbers["source_threshold"] == pytest.approx(share)


def test_without_them_labels_from_the_stream_do():
    method = only(miscoverage=0.9)
    (query,) = method.step(batch_of(ROWS), Allowance(9)).queries
    assert method.threshold.value == 0
    method.learn([Answer(query, 0, "me")])
    method.step(batch_of(ROWS, 1), Allowance(0))

    share = method.predict(batch_of(ROWS).inputs[5:]).logits.softmax(1)[0, 0].item()
    calibrated = method._true_class_shares(method.model)
    assert calibrated == pytest.approx([share], abs=1e-6)


def test_assembly_hands_over_source_samples_with_their_labels():
    inputs, labels = tiny_batch(size=30).inputs, [n % 3 for n in range(30)]
    table = MethodTable(name="cpatta", calibration_samples=20)
    method = build_method(table, tiny_classifier(), 0, ArraySamples(inputs, labels))

    rows, classes = method.calibration
    assert len(rows) == len(classes) == 20
    for row, kind in zip(rows, classes.tolist(), strict=True):
        place = (inputs == row).all(dim=1).nonzero().item()
        assert labels[place] == kind
    assert build_method(table, tiny_classifier(), 0).calibration is None


@pytest.mark.parametrize(
    "oracle", [lambda known: Delayed(known, rounds=2), lambda known: Skipping(known, rate=0.5)]
)
def test_late_and_missing_answers_are_no_trouble(oracle):
    labels = dict.fromkeys((f"{n}-{k}" for n in range(6) for k in range(8)), 0)
    method, ledger = CPATTA(tiny_classifier()), Ledger(Budget(9))
    run([tiny_batch(n) for n in range(6)], method, oracle(KnownLabels(labels)), ledger)

    assert 0 < ledger.received <= 9
    assert len(method.labelled_anchors) == ledger.received


def test_forgotten_samples_are_gone_from_everything_that_is_kept():
    method = only()
    method.learn(answers_to(method.step(batch_of(ROWS), Allowance(9)).queries))
    method.forget(batch_of(ROWS).samples)

    assert len(method.labelled) == len(method.pseudo_labelled) == len(method.waiting) == 0


def calibrated(model, **settings):
    source, labels = tiny_batch(99, size=20).inputs, torch.arange(20) % 3
    return CPATTA(model, source_inputs=source, source_labels=labels, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": 0.1, "pseudo_lr": 0.1},
        {"top": 2, "temperature": 0.1},
        {"trainable": "head", "pseudo_labels": 0},
        {"rate": LabelRate(spread_over=30)},
    ],
)
def test_it_keeps_its_promises_with_other_settings(settings):
    check_method(lambda model: calibrated(model, **settings))


def test_models_without_norm_layers_adapt_too():
    check_method(lambda model: CPATTA(nn.Sequential(model[0], model[2], model[3])))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "CPATTA: lr"),
        ({"pseudo_lr": 0}, "CPATTA: pseudo_lr"),
        ({"top": 0}, "CPATTA: top"),
        ({"shift_factor": 0}, "CPATTA: shift_factor"),
        ({"source_inputs": torch.ones(2, 4)}, r"source_labels must be .*got \(2, 4\) and None"),
        (
            {"source_inputs": torch.ones(2, 4), "source_labels": torch.ones(3)},
            r"got \(2, 4\) and \(3,\)",
        ),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        CPATTA(tiny_classifier(), **settings)
