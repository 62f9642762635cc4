import copy

import pytest
import torch
import torch.nn.functional as F

from attakit.errors import SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.split import find_split
from attakit.nn.trainable import trainable_parameters
from attakit.queries import SampleId
from attakit.records import LabelledRows
from attakit.store.anchors import Anchors
from attakit.testing import tiny_classifier
from attakit.testing.methods import same_state
from attakit.train import DistillingTrainer, Weighting


def rows(count, *, label=0, name="a", logits=None, activations=None):
    random = torch.Generator().manual_seed(count)
    return LabelledRows(
        tuple(SampleId(f"{name}{number}") for number in range(count)),
        torch.randn(count, 4, generator=random),
        torch.full((count,), label),
        torch.zeros(count, 8),
        torch.zeros(count, 3) if logits is None else logits,
        torch.ones(count),
        activations,
    )


def anchors(count, **settings):
    store = Anchors()
    store.add(rows(count, **settings))
    return store


def classifier():
    return Classifier(tiny_classifier()).eval()


def test_nothing_is_trained_without_new_labels():
    trainer, model, high = DistillingTrainer(), classifier(), anchors(5)
    assert trainer.fit(model, Anchors(), high, step=0).updates > 0
    before = copy.deepcopy(model.state_dict())

    assert trainer.fit(model, anchors(9, name="low"), high, step=1).updates == 0
    assert same_state(before, model.state_dict())


def test_updates_follow_the_number_of_new_labels():
    trainer, model, high = DistillingTrainer(updates_per_label=3, enough=0), classifier(), Anchors()
    done = []
    for number, count in enumerate((4, 1, 0, 2, 40)):
        high.add(rows(count, name=f"{number}-"))
        done.append(trainer.fit(model, Anchors(), high, step=number).updates)

    assert done == [12, 3, 0, 6, 40]


def test_training_ends_when_the_labels_are_learned():
    trainer = DistillingTrainer(updates_per_label=100, max_updates=1000, lr=0.05, enough=0.1)

    training = trainer.fit(classifier(), Anchors(), anchors(4), step=0)

    assert training.updates < 100
    assert training.numbers["loss_high"] < 0.1


def test_one_update_is_the_weighted_gradient_step_on_labels_and_soft_answers():
    logits = torch.tensor([[4.0, 1.0, 0.0]] * 3)
    low, high = anchors(3, name="low", logits=logits), anchors(2, label=2)
    trainer = DistillingTrainer(
        lr=0.1, max_updates=1, temperature=2.0, weighting=Weighting(cold_start_size=0)
    )
    model, expected = classifier(), classifier()

    trainer.fit(model, low, high, step=0)

    answers = expected(low.rows.inputs).logits
    soft = 4 * (
        F.cross_entropy(answers / 2, (logits / 2).softmax(dim=1))
        - F.cross_entropy(logits / 2, (logits / 2).softmax(dim=1))
    )
    hard = F.cross_entropy(expected(high.rows.inputs).logits, high.rows.labels)
    optimizer = torch.optim.Adam(expected.parameters(), lr=0.1)
    (0.6 * soft + 0.4 * hard).backward()
    optimizer.step()
    for trained, by_hand in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(trained, by_hand)


def test_the_source_models_answers_are_held_from_the_first_update_on():
    model = classifier()
    low = rows(50, name="low")
    source = model(low.inputs).logits.detach()
    store, free = Anchors(), copy.deepcopy(model)
    store.add(rows(50, name="low", logits=source))

    DistillingTrainer(enough=0, lr=0.05).fit(model, store, anchors(10, label=1), step=0)
    DistillingTrainer(enough=0, lr=0.05).fit(free, Anchors(), anchors(10, label=1), step=0)

    with torch.no_grad():
        held, lost = (
            float((each(low.inputs).logits.softmax(1) - source.softmax(1)).abs().mean())
            for each in (model, free)
        )
    assert held < lost / 2


def test_every_update_has_new_labels_in_it():
    trainer, model, high = DistillingTrainer(batch_size=4, enough=0), classifier(), anchors(60)
    trainer.fit(model, Anchors(), high, step=0)
    new = rows(1, name="new")
    high.add(new)
    seen = []
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0]))

    trainer.fit(model, Anchors(), high, step=1)

    assert len(seen) == 3
    assert all((batch == new.inputs).all(dim=1).any() for batch in seen)
    assert {len(batch) for batch in seen} == {4}


def test_a_split_network_trains_on_activations_alone():
    model = classifier()
    trainable_parameters(model, "last:1")
    split = find_split(model, rows(5).inputs)
    with torch.no_grad():
        _, activations = split.run(rows(5).inputs)
    whole = copy.deepcopy(model)

    DistillingTrainer().fit(split, Anchors(), anchors(5, activations=activations), step=0)
    DistillingTrainer().fit(whole, Anchors(), anchors(5), step=0)

    for one, other in zip(model.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("norm", "moves"), [("frozen", False), ("blended", False), ("running", True)]
)
def test_only_running_statistics_move(norm, moves):
    model = classifier()
    model.use_norm(norm)
    before = model.model[1].running_mean.clone()

    DistillingTrainer(enough=0).fit(model, Anchors(), anchors(20), step=0)

    assert torch.equal(model.model[1].running_mean, before) != moves


def test_a_saved_trainer_knows_what_it_has_learned():
    trainer, again, high = DistillingTrainer(), DistillingTrainer(), anchors(5)
    trainer.fit(classifier(), Anchors(), high, step=0)

    again.load_state_dict(trainer.state_dict())

    assert again.fit(classifier(), Anchors(), high, step=1).updates == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr": "fast"}, "lr must be a number or 'auto', got 'fast'"),
        ({"lr": 0}, "lr must be greater than 0, got 0"),
        ({"updates_per_label": 0}, "updates_per_label must be greater than 0"),
        ({"max_updates": 0}, "max_updates must be at least 1"),
        ({"temperature": 0}, "temperature must be greater than 0"),
        ({"enough": -1}, "enough must be at least 0"),
        ({"batch_size": 1}, "batch_size must be at least 2"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        DistillingTrainer(**settings)
