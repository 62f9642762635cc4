"""Every method, with every kind of setting and on every kind of model, keeps its promises."""

from functools import partial

import pytest
import torch
from torch import nn

from attakit.engine import run
from attakit.errors import ModelError, SettingError
from attakit.label import Budget, KnownLabels, Ledger
from attakit.methods import (
    EATA,
    METHODS,
    NOTE,
    ROID,
    SAR,
    DeYO,
    ReferenceSimATTA,
    RoTTA,
    SimATTA,
    Tent,
)
from attakit.nn.seeding import seeded
from attakit.select import IncrementalClustering, LabelRate, Uniform
from attakit.testing import check_method, tiny_batch, tiny_classifier
from attakit.train.balanced import BalancedTrainer

QUICK = IncrementalClustering(inits=1)  # selectors hold no state, so they may be shared
SETTINGS = {
    "batch statistics": {"norm": "batch"},
    "running statistics": {"norm": "running"},
    "blended statistics": {"norm": "blended"},
    "norm layers train": {"trainable": "norm"},
    "the head trains": {"trainable": "head"},
    "the last stage trains": {"trainable": "last:1"},
    "batch statistics, norm layers": {"norm": "batch", "trainable": "norm"},
    "low bound given": {"low_entropy_bound": 0.5},
    "high bound given": {"high_entropy_bound": 0.2},
    "both bounds given": {"low_entropy_bound": 0.9, "high_entropy_bound": 0.5},
    "no source-like samples": {"low_entropy_bound": 0.0},
    "everything is uncertain": {"high_entropy_bound": 0.0, "include_bound": True},
    "random questions": {"selector": Uniform()},
    "clusters that grow as in the paper": {
        "selector": IncrementalClustering(inits=1, cluster_growth=1)
    },
    "a fixed pace": {"rate": LabelRate(per_1000=200, first=1)},
    "a budget spread out": {"rate": LabelRate(spread_over=20)},
    "few source-like samples kept": {"low_entropy_bound": 2.0, "low_entropy_capacity": 3},
    "another seed": {"seed": 5},
}


# The public code trains until the loss stops falling: thousands of updates, which show no more.
REGISTERED = {**METHODS, "simatta_reference": partial(ReferenceSimATTA, max_updates=5)}


@pytest.mark.parametrize("name", METHODS)
def test_every_registered_method_keeps_its_promises(name):
    check_method(REGISTERED[name])


BLENDED = {
    "batch_norm": {},
    "tent": {"lr": 0.1, "updates": 2},
    "eata": {"lr": 0.1, "reliable_share": 1.0, "redundancy_margin": 1.0},
    "rdumb": {"lr": 0.1, "reliable_share": 1.0, "redundancy_margin": 1.0},
    "sar": {"lr": 0.1, "reliable_share": 1.0},
    "deyo": {"lr": 0.1, "entropy_share": 1.0, "difference_bound": -1.0},
    "roid": {"lr": 0.1},
    "cmf": {"lr": 0.1},
    "cotta": {"lr": 0.1, "views": 2, "confidence_bound": 1.0},
    "eatta": {"lr": 0.1},
}


@pytest.mark.parametrize("name", BLENDED)
def test_methods_keep_their_promises_with_blended_statistics(name):
    check_method(lambda model: METHODS[name](model, norm="blended", **BLENDED[name]))


@pytest.mark.parametrize("name", ["enhanced", "hiltta"])
def test_methods_around_others_keep_their_promises_with_blended_statistics(name):
    check_method(lambda model: METHODS[name](model, method=Tent(model, norm="blended")))


@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("name", BLENDED)
def test_blended_statistics_differ_from_those_of_the_batch_at_any_batch_size(name, size):
    kind, settings = METHODS[name], BLENDED[name]
    blended, _ = adapted(kind(tiny_classifier(), norm="blended", **settings), size)
    plain, _ = adapted(kind(tiny_classifier(), **settings), size)
    assert bool(blended.logits.isfinite().all())
    assert not torch.allclose(blended.logits, plain.logits)


@pytest.mark.parametrize("name", BLENDED)
def test_an_unknown_kind_of_statistics_is_refused(name):
    with pytest.raises(SettingError, match="norm must be one of batch, blended, got 'running'"):
        METHODS[name](tiny_classifier(), norm="running")


def quick(model, **settings):
    trainer = BalancedTrainer(max_updates=3)
    return SimATTA(model, **{"selector": QUICK, "trainer": trainer} | settings)


@pytest.mark.parametrize("name", SETTINGS)
def test_simatta_keeps_its_promises_with_other_settings(name):
    check_method(lambda model: quick(model, **SETTINGS[name]))


def test_simatta_keeps_its_promises_with_momentum_that_lasts():
    check_method(
        lambda model: SimATTA(
            model,
            high_entropy_bound=0.0,
            selector=QUICK,
            trainer=BalancedTrainer(max_updates=3, fresh_optimizer=False),
        )
    )


def body(norm, classes=3):
    with seeded(0, "model"):
        layers = [nn.Linear(4, 8), norm, nn.ReLU(), nn.Linear(8, classes)]
        return nn.Sequential(*[layer for layer in layers if layer is not None])


MODELS = {
    "no norm": lambda: body(None),
    "group norm": lambda: body(nn.GroupNorm(2, 8)),
    "layer norm": lambda: body(nn.LayerNorm(8)),
    "batch norm": tiny_classifier,
    "one logit": lambda: body(nn.BatchNorm1d(8), classes=1),
    "two logits": lambda: body(nn.BatchNorm1d(8), classes=2),
}
LABELS = {
    sample: number % 2
    for step in range(4)
    for number, sample in enumerate(tiny_batch(step).samples)
}


def adapted(method, size):
    """Run a short stream; return the answers to its last batch."""
    ledger = Ledger(Budget(6))
    batches = [tiny_batch(step, size=size) for step in range(4)]
    run(batches, method, KnownLabels(LABELS), ledger)
    return method.predict(batches[-1].inputs), ledger


@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("norm", ["frozen", "batch", "running", "blended"])
@pytest.mark.parametrize("name", MODELS)
def test_simatta_adapts_any_model_at_any_batch_size(name, norm, size):
    model = MODELS[name]()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    method = quick(model, high_entropy_bound=0.0, norm=norm)
    prediction, ledger = adapted(method, size)
    assert prediction.logits.shape == (size, 3 if "logit" not in name else 2)
    assert bool(prediction.logits.isfinite().all())
    assert ledger.received > 0
    after = list(method.model.parameters())
    assert any(not torch.equal(*pair) for pair in zip(before, after, strict=True))


NORM_TRAINING = {
    "tent": lambda model: Tent(model, lr=0.1),
    "eata": lambda model: EATA(model, lr=0.1, reliable_share=1.0, redundancy_margin=1.0),
    "sar": lambda model: SAR(model, lr=0.1, reliable_share=1.0),
    "deyo": lambda model: DeYO(model, lr=0.1, entropy_share=1.0, difference_bound=-1.0),
    "roid": lambda model: ROID(model, lr=0.1),
    "rotta": lambda model: RoTTA(model, lr=0.1, update_every=2),
    "note": lambda model: NOTE(model, lr=0.1, update_every=2),
}


@pytest.mark.parametrize("method", NORM_TRAINING)
@pytest.mark.parametrize("size", [1, 8])
@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"no norm"}))
def test_norm_layers_of_any_model_adapt_at_any_batch_size(name, size, method):
    prediction, ledger = adapted(NORM_TRAINING[method](MODELS[name]()), size)
    assert prediction.logits.shape == (size, 3 if "logit" not in name else 2)
    assert bool(prediction.logits.isfinite().all())
    assert ledger.asked == 0


@pytest.mark.parametrize("kind", [EATA, SAR, SimATTA, Tent])
def test_batch_norm_without_stored_statistics_needs_more_than_one_sample(kind):
    method = kind(body(nn.BatchNorm1d(8, track_running_stats=False)))
    assert adapted(method, size=8)[0].logits.isfinite().all()
    with pytest.raises(ModelError, match="more than 1 value per channel"):
        method.predict(tiny_batch(size=1).inputs)
