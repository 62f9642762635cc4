import copy

import pytest
import torch
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.seeding import seeded
from attakit.paper.validation.fitting import Fitting, fit, measure
from attakit.stream.samples import ArraySamples


@pytest.fixture
def model():
    with seeded(0, "weights"):
        return Classifier(nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)))


@pytest.fixture
def halves():
    """Two classes on both sides of a line; the second half of the samples has labels swapped."""
    points = torch.randn(80, 2, generator=torch.Generator().manual_seed(0))
    labels = (points[:, 0] > 0).long()
    labels[40:] = 1 - labels[40:]
    return ArraySamples(points, labels)


def train(model, samples, weights, **settings):
    settings = {"norm": "frozen", "seed": 0, **settings}
    fit(model, samples, weights, Fitting(updates=60, lr=0.05, batch_size=16), **settings)
    return model


def test_the_half_with_the_weight_is_learned(model, halves):
    weights = torch.cat([torch.full((40,), 1.9), torch.full((40,), 0.1)])

    train(model, halves, weights)

    assert measure(model, halves).accuracy == pytest.approx(0.5, abs=0.1)
    right = model(halves.load(range(40))).logits.argmax(1) == torch.tensor(halves.labels[:40])
    assert right.float().mean() > 0.9


def test_a_sample_without_weight_does_not_matter(model, halves):
    weights = torch.cat([torch.ones(40), torch.zeros(40)])
    other = ArraySamples(
        torch.cat([halves.load(range(40)), torch.full((40, 2), 99.0)]), halves.labels
    )
    twin = copy.deepcopy(model)

    train(model, halves, weights, norm="running")
    train(twin, other, weights, norm="running")

    inputs = halves.load(range(5))
    assert torch.equal(model(inputs).logits, twin(inputs).logits)


@pytest.mark.parametrize(("norm", "moves"), [("frozen", False), ("running", True)])
def test_statistics_move_only_if_told(model, halves, norm, moves):
    before = model.model[1].running_mean.clone()

    train(model, halves, torch.ones(80), norm=norm)

    assert torch.equal(model.model[1].running_mean, before) != moves
    assert not model.training


def test_the_seed_decides_about_everything(model, halves):
    logits = []
    for seed in (1, 1, 2):
        trained = train(copy.deepcopy(model), halves, torch.ones(80), seed=seed)
        logits.append(trained(halves.load([0, 1])).logits)

    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


def test_measuring_counts_every_sample_once(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    samples = ArraySamples(torch.zeros(300, 2), [0] * 200 + [1] * 100)

    found = measure(model.eval(), samples)

    assert found.loss == pytest.approx(0.6931, abs=1e-4)
    assert found.accuracy == pytest.approx(2 / 3)


def test_training_on_nothing_is_refused(model, halves):
    with pytest.raises(ModelError, match="no sample has any weight"):
        train(model, halves, torch.zeros(80))


def test_a_loss_that_is_not_finite_is_told(model, halves):
    with pytest.raises(ModelError, match="Lower it with --lr"):
        train(model, halves, torch.full((80,), torch.inf))


@pytest.mark.parametrize("setting", [{"updates": 0}, {"lr": 0.0}, {"batch_size": 0}])
def test_impossible_settings_are_refused(setting):
    with pytest.raises(SettingError, match=next(iter(setting))):
        Fitting(**setting)
