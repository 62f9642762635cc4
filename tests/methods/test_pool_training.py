"""Training on the labels of a pool, against gradient descent written out."""

import pytest
import torch
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.methods import PoolAdaptation
from attakit.queries import Answer, Query
from attakit.select import Uniform
from attakit.stream import ArraySamples
from attakit.testing import tiny_batch, tiny_classifier

LR, MOMENTUM = 0.1, 0.9


def pool_learner(model, samples, **settings):
    return PoolAdaptation(model, samples, selector=Uniform(), budget=8, **settings)


def answers(samples, labels, step=0):
    return [
        Answer(Query(samples.names[place], step), label, "me") for place, label in labels.items()
    ]


def linear():
    model = nn.Linear(2, 3)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def gradient(weight, bias, row, label):
    """Of the cross-entropy of one sample: (p - onehot) ⊗ x, and p - onehot for the bias."""
    residual = (weight @ row + bias).softmax(dim=0) - torch.eye(3)[label]
    return residual[:, None] * row, residual


def test_updates_are_momentum_sgd_and_each_training_starts_without_momentum():
    row = torch.tensor([1.0, 2.0])
    pool = ArraySamples(row[None], [0])
    learner = pool_learner(linear(), pool, updates=2, lr=LR, momentum=MOMENTUM)
    weight, bias = torch.zeros(3, 2), torch.zeros(3)
    for _training in range(2):
        speed = torch.zeros(3, 2), torch.zeros(3)
        for _update in range(2):
            slopes = gradient(weight, bias, row, label=1)
            speed = tuple(MOMENTUM * old + slope for old, slope in zip(speed, slopes, strict=True))
            weight, bias = weight - LR * speed[0], bias - LR * speed[1]
        learner.learn(answers(pool, {0: 1}))

    torch.testing.assert_close(learner.adapted_model.weight, weight)
    torch.testing.assert_close(learner.adapted_model.bias, bias)


def test_all_labels_come_before_any_comes_again():
    pool = ArraySamples(torch.arange(6.0)[:, None].repeat(1, 4), [0] * 6)
    learner = pool_learner(tiny_classifier(), pool, updates=3, batch_size=2)
    drawn = []
    learner.images = lambda names: drawn.append(names) or PoolAdaptation.images(learner, names)

    learner.learn(answers(pool, dict.fromkeys(range(6), 1)))

    assert sorted(name for batch in drawn for name in batch) == sorted(pool.names)


def test_only_new_labels_start_a_training():
    pool = ArraySamples(tiny_batch().inputs, [0] * 8)
    learner = pool_learner(tiny_classifier(), pool, updates=2)

    counts = [
        learner.learn(given).updates
        for given in ([], answers(pool, {0: None}), answers(pool, {1: 2}), [])
    ]

    assert counts == [0, 0, 2, 0]
    assert learner.labels == {"1": 2}


@pytest.mark.parametrize("norm", ["frozen", "batch", "running"])
def test_only_running_statistics_move(norm):
    pool = ArraySamples(tiny_batch().inputs, [0] * 8)
    learner = pool_learner(tiny_classifier(), pool, updates=2, norm=norm)
    before = learner.adapted_model[1].running_mean.clone()

    learner.learn(answers(pool, {0: 0, 1: 1, 2: 2}))

    assert torch.equal(before, learner.adapted_model[1].running_mean) == (norm != "running")


def test_only_what_is_trainable_trains_and_the_callers_model_stays():
    model = tiny_classifier()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    pool = ArraySamples(tiny_batch().inputs, [0] * 8)
    learner = pool_learner(model, pool, updates=2, trainable="head")

    learner.learn(answers(pool, {0: 0, 1: 1}))

    after = learner.adapted_model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved == {"3.weight", "3.bias"}
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_a_loss_that_is_no_number_is_named():
    pool = ArraySamples(1e30 * tiny_batch().inputs, [0] * 8)

    with pytest.raises(
        ModelError, match=r"PoolAdaptation: the loss became .* Lower lr \(now 1e\+30\)"
    ):
        pool_learner(tiny_classifier(), pool, lr=1e30).learn(answers(pool, {0: 0, 1: 1}))


@pytest.mark.parametrize(
    "settings", [{"updates": 0}, {"lr": 0.0}, {"momentum": 2.0}, {"batch_size": 0}]
)
def test_settings_are_checked(settings):
    (name,) = settings
    with pytest.raises(SettingError, match=f"PoolAdaptation: {name}"):
        pool_learner(tiny_classifier(), ArraySamples(torch.zeros(1, 4), [0]), **settings)
