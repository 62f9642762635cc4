import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attakit.errors import ModelError, SettingError
from attakit.methods.reference import ReferenceTrainer
from attakit.nn.classifier import Classifier
from attakit.queries import SampleId
from attakit.records import LabelledRows
from attakit.store.anchors import Anchors
from attakit.testing import tiny_classifier
from attakit.testing.methods import same_state
from attakit.train.balanced import BalancedTrainer
from attakit.train.weighting import Weighting


def anchors(count: int, *, shift: float = 0.0, label: int = 0) -> Anchors:
    store = Anchors()
    random = torch.Generator().manual_seed(count)
    store.add(
        LabelledRows(
            tuple(SampleId(f"{label}-{number}") for number in range(count)),
            torch.randn(count, 4, generator=random) + shift,
            torch.full((count,), label),
            torch.zeros(count, 8),
            torch.zeros(count, 3),
            torch.ones(count),
        )
    )
    return store


def classifier() -> Classifier:
    return Classifier(tiny_classifier()).eval()


def test_one_update_is_the_weighted_gradient_step_of_algorithm_one():
    low, high = anchors(3, label=1), anchors(2, label=2)
    weighting = Weighting(cold_start_size=0)
    trainer = BalancedTrainer(
        lr=0.1, momentum=0.0, batch_size=10, max_updates=1, weighting=weighting
    )
    model, expected = classifier(), classifier()

    trainer.fit(model, low, high, step=0)

    # By hand: w₀ = 3 / 5 on the three source-like anchors, 2 / 5 on the two labelled ones.
    loss_low = F.cross_entropy(expected(low.rows.inputs).logits, low.rows.labels)
    loss_high = F.cross_entropy(expected(high.rows.inputs).logits, high.rows.labels)
    (0.6 * loss_low + 0.4 * loss_high).backward()
    for trained, by_hand in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(trained, by_hand - 0.1 * by_hand.grad)


def test_one_shared_forward_pass_equals_two_with_frozen_statistics():
    low, high = anchors(30, label=1), anchors(20, label=2)
    shared, apart = classifier(), classifier()

    BalancedTrainer().fit(shared, low, high, step=0)
    apart_trainer = BalancedTrainer()
    apart_trainer._logits = lambda model, halves: [model(inputs).logits for inputs in halves]
    apart_trainer.fit(apart, low, high, step=0)

    for one, other in zip(shared.parameters(), apart.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("norm", "trainer", "passes"),
    [
        ("frozen", BalancedTrainer, 1),
        ("frozen", ReferenceTrainer, 2),
        ("batch", BalancedTrainer, 2),
        ("running", BalancedTrainer, 2),
    ],
)
def test_halves_share_a_pass_only_with_frozen_statistics(norm, trainer, passes):
    model = classifier()
    model.use_norm(norm)
    calls = []
    model.register_forward_hook(lambda *_: calls.append(1))

    trainer(max_updates=1).fit(model, anchors(20, label=1), anchors(20, label=2), step=0)

    assert len(calls) == passes


@pytest.mark.parametrize(
    ("norm", "moves"), [("frozen", False), ("batch", False), ("running", True)]
)
def test_only_running_statistics_move(norm, moves):
    model = classifier()
    model.use_norm(norm)
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}

    BalancedTrainer(max_updates=2).fit(model, anchors(20, shift=3.0), anchors(5, shift=3.0), 0)

    after = dict(model.named_buffers())
    assert any(not torch.equal(before[name], after[name]) for name in before) == moves
    assert not model.training


def test_nothing_happens_without_labelled_anchors():
    model = classifier()
    before = copy.deepcopy(model.state_dict())

    training = BalancedTrainer().fit(model, anchors(5), Anchors(), step=0)

    assert training.updates == 0
    assert same_state(before, model.state_dict())


def test_without_source_like_anchors_the_labelled_ones_count_fully():
    training = BalancedTrainer(max_updates=1).fit(classifier(), Anchors(), anchors(5), step=0)

    assert training.numbers["low_weight"] == 0.0


def test_labelled_anchors_stand_in_for_missing_source_like_ones_when_told():
    rows = []
    model = classifier()
    model.register_forward_pre_hook(lambda _model, inputs: rows.append(len(inputs[0])))
    weighting = Weighting(cold_start_size=100)

    trainer = BalancedTrainer(max_updates=1, fill_missing_low=True, weighting=weighting)
    training = trainer.fit(model, Anchors(), anchors(5), step=0)

    assert rows == [10]
    assert training.numbers["low_weight"] == pytest.approx(0.8)


@pytest.mark.parametrize("cold_start_size", [0, 5])
def test_labelled_anchors_that_stand_in_weigh_as_much_as_the_labelled_half(cold_start_size):
    weighting = Weighting(cold_start_size=cold_start_size)
    trainer = BalancedTrainer(max_updates=1, fill_missing_low=True, weighting=weighting)

    training = trainer.fit(classifier(), Anchors(), anchors(5), step=0)

    assert training.numbers["low_weight"] == 0.5


def test_it_warns_once_when_labels_outweigh_the_source(caplog):
    trainer = BalancedTrainer(max_updates=1)
    model, few, many = classifier(), anchors(99, label=1), anchors(100, label=2)

    trainer.fit(model, anchors(20), few, step=0)
    trainer.fit(model, anchors(100), many, step=1)
    trainer.fit(model, Anchors(), many, step=2)
    assert not caplog.records, "few labels, an even share and none at all are no reason to warn"

    for step in (3, 4):
        trainer.fit(model, few, many, step=step)

    assert [record.getMessage() for record in caplog.records] == [
        "99 source-like samples for 100 labels: their share is 0.50. Below 0.5 the model may "
        "forget the source. Raise low_entropy_capacity or low_entropy_bound."
    ]


def test_updates_never_exceed_the_cap():
    training = BalancedTrainer(max_updates=7, patience=100).fit(
        classifier(), anchors(5), anchors(5), step=0
    )

    assert training.updates == 7


def test_plateau_ends_training_without_a_cap():
    trainer = BalancedTrainer(max_updates="unlimited", lr=1e-9, window=2, patience=1)

    training = trainer.fit(classifier(), Anchors(), anchors(4), step=0)

    assert training.updates < 100


def test_kept_momentum_differs_from_fresh_momentum_and_survives_saving():
    def twice(fresh: bool, save: bool = False) -> Classifier:
        model = classifier()
        trainer = BalancedTrainer(fresh_optimizer=fresh, max_updates=3)
        trainer.fit(model, anchors(9, label=1), anchors(9, label=2), step=0)
        if save:
            restored = BalancedTrainer(fresh_optimizer=fresh, max_updates=3)
            restored.load_state_dict(trainer.state_dict())
            trainer = restored
        trainer.fit(model, anchors(9, label=1), anchors(9, label=2), step=1)
        return model

    fresh, kept, resumed = twice(True), twice(False), twice(False, save=True)

    assert not same_state(fresh.state_dict(), kept.state_dict())
    assert same_state(kept.state_dict(), resumed.state_dict())


def test_parameters_that_do_not_train_stay():
    model = classifier()
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    before = copy.deepcopy(model.state_dict())

    BalancedTrainer(max_updates=2).fit(model, anchors(5), anchors(5, label=1), step=0)

    changed = [name for name in before if not torch.equal(before[name], model.state_dict()[name])]
    assert changed == ["model.3.weight", "model.3.bias"]


def test_a_loss_that_is_not_finite_stops_with_advice():
    model = Classifier(nn.Sequential(nn.Linear(4, 3)))
    with torch.no_grad():
        model.head.weight.fill_(float("nan"))

    with pytest.raises(ModelError, match=r"the loss became nan\. Lower lr"):
        BalancedTrainer().fit(model, anchors(3), anchors(3), step=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": 0}, "lr must be greater than 0, got 0"),
        ({"lr": "fast"}, "lr must be a number, got 'fast'"),
        ({"momentum": 2}, "momentum must be at least 0 and at most 1, got 2"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"max_updates": 0}, "max_updates must be at least 1, got 0"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        BalancedTrainer(**settings)
