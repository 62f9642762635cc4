"""HILTTA: how candidates are scored, which one adapts, and what happens without answers."""

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from attakit.build.methods import build_method
from attakit.engine import run
from attakit.errors import DoesNotApply, ModelError, SettingError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, Skipping
from attakit.methods import EATA, HILTTA, SAR, BatchNorm, CoTTA, SimATTA, SourceOnly, Tent
from attakit.methods.hiltta import FACTORS, normalised
from attakit.queries import Allowance, Answer
from attakit.records import Batch
from attakit.select import KMargin, LabelRate, Uniform
from attakit.settings.experiment import MethodTable
from attakit.testing import check_method, tiny_batch, tiny_classifier
from attakit.testing.methods import answers_to

RATES = [0.01, 1.0, 5.0]
TWO_LABELS = LabelRate(per_1000=250, first=0)


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def chooser(rates=RATES, **settings):
    model = tiny_classifier()
    settings = {"rate": TWO_LABELS, "labelled_lr": 0.0, "selector": Uniform()} | settings
    return HILTTA(model, method=Tent(model, lr=1.0), candidates={"lr": rates}, **settings)


def tents(rates=RATES):
    """A method of its own for every candidate, from the same start."""
    return [Tent(tiny_classifier(), lr=rate) for rate in rates]


def part(batch, places):
    """Some samples of a batch."""
    return Batch(batch.step, tuple(batch.samples[at] for at in places), batch.inputs[places])


def scores_by_hand(candidates, batch, labels):
    """Labelled loss and squared distance to the source, each moved to 0 … 1, added up."""
    source = SourceOnly(tiny_classifier()).predict(batch.inputs).logits.double().numpy()
    known = [place for place, sample in enumerate(batch.samples) if sample in labels]
    rest = [place for place in range(len(batch)) if place not in known]
    losses, distances = [], []
    for candidate in candidates:
        candidate.step(part(batch, rest), Allowance(0))
        shares = softmax(candidate.predict(batch.inputs).logits.double().numpy())
        own = [shares[place, labels[batch.samples[place]]] for place in known]
        losses.append(-np.log(own).mean())
        distances.append(((shares[rest] - softmax(source)[rest]) ** 2).mean())
    return sum((each - np.min(each)) / np.ptp(each) for each in (losses, distances))


def answered(method, batch):
    """One turn with labels; returns them by sample, and what the training reports."""
    answers = answers_to(method.step(batch, Allowance(9)).queries)
    return {answer.query.sample: answer.label for answer in answers}, method.learn(answers)


def weights(method):
    return torch.cat([each.detach().flatten() for each in method.model.parameters()])


def test_the_candidate_with_the_best_score_adapts_the_model():
    method, batch = chooser(), tiny_batch()
    labels, training = answered(method, batch)

    candidates = tents()
    expected = scores_by_hand(candidates, batch, labels)

    assert len(labels) == 2
    assert method.scores == pytest.approx(expected, abs=1e-4)
    best = int(np.argmin(expected))
    assert torch.allclose(weights(method), weights(candidates[best]), atol=1e-6)
    assert (training.numbers["candidate"], training.numbers["lr"]) == (best, RATES[best])


def test_scores_are_smoothed_over_batches():
    method = chooser(smoothing=0.75)
    labels, _ = answered(method, tiny_batch(0))
    first = np.array(scores_by_hand(tents(), tiny_batch(0), labels))
    rest = [at for at, sample in enumerate(tiny_batch(0).samples) if sample not in labels]
    best = RATES[int(first.argmin())]
    second_labels, _ = answered(method, tiny_batch(1))

    followers = tents()
    for each in followers:  # all start from what the best made of the first batch
        each.optimizer.param_groups[0]["lr"] = best
        each.step(part(tiny_batch(0), rest), Allowance(0))
    for each, rate in zip(followers, RATES, strict=True):
        each.optimizer.param_groups[0]["lr"] = rate
    second = np.array(scores_by_hand(followers, tiny_batch(1), second_labels))

    assert method.scores == pytest.approx(0.75 * first + 0.25 * second, abs=1e-3)


def test_all_weights_learn_from_labelled_samples_after_the_choice():
    # The first step of Adam moves every parameter by its step size, against the gradient's sign.
    method, without = chooser(labelled_lr=1e-3), chooser()
    for each in (method, without):
        answered(each, tiny_batch())

    moved = (weights(method) - weights(without)).abs()

    assert moved.max() == pytest.approx(1e-3, rel=1e-3)
    assert (moved > 5e-4).float().mean() > 0.5


def test_without_any_label_the_method_adapts_with_its_own_settings():
    method, alone = chooser(), Tent(tiny_classifier(), lr=1.0)
    for step in range(3):
        queries = method.step(tiny_batch(step), Allowance(9)).queries
        method.learn([Answer(query, None, "skipped") for query in queries])
        alone.step(tiny_batch(step), Allowance(0))

    assert torch.equal(weights(method), weights(alone))


def test_an_answer_that_is_late_does_not_hold_up_the_next_batch():
    method, alone = chooser(), Tent(tiny_classifier(), lr=1.0)
    queries = method.step(tiny_batch(0), Allowance(9)).queries
    start = weights(method)

    assert method.learn([]).updates == 0  # it may still come
    assert torch.equal(weights(method), start)
    before = method.predict(tiny_batch(1).inputs).logits
    assert torch.equal(method.step(tiny_batch(1), Allowance(0)).prediction.logits, before)

    alone.step(tiny_batch(0), Allowance(0))
    assert torch.equal(weights(method), weights(alone))
    method.learn(answers_to(queries))  # now scores what candidates make of batch 1
    assert len(method.scores) == len(RATES)


class Fragile(Tent):
    """Diverges at large step sizes: at once, or with weights that are no numbers."""

    def adapt(self, inputs):
        rate = self.optimizer.param_groups[0]["lr"]
        if rate > 100:
            raise ModelError("the loss became nan")
        step = super().adapt(inputs)
        if rate > 10:
            nn.init.constant_(self.model.model[1].weight, math.nan)
        return step


def fragile(*rates):
    model = tiny_classifier()
    inside = Fragile(model, lr=0.01)
    return HILTTA(model, method=inside, candidates={"lr": rates}, rate=TWO_LABELS)


def test_a_candidate_that_diverges_is_out_and_the_run_continues():
    method = fragile(1000.0, 0.01, 20.0)
    for step in range(3):
        _, training = answered(method, tiny_batch(step))

    assert training.numbers["candidate"] == 1
    assert method.scores[0] == method.scores[2] == 4
    assert method.predict(tiny_batch(9).inputs).logits.isfinite().all()


def test_where_all_candidates_diverge_it_says_so():
    with pytest.raises(ModelError, match="every candidate"):
        answered(fragile(1000.0, 20.0), tiny_batch())


def test_by_default_it_tries_seven_step_sizes_and_asks_about_32_in_1000():
    method = HILTTA(tiny_classifier())

    assert [each["lr"] for each in method.candidates] == pytest.approx(
        [1e-3 * factor for factor in FACTORS]
    )
    assert (FACTORS[0], FACTORS[-1]) == pytest.approx((0.1, 10))
    assert isinstance(method.selector, KMargin)
    assert (method.rate.per_1000, method.rate.first) == (32, 0)


def test_several_settings_give_every_combination():
    model = tiny_classifier()
    table = {"lr": [0.1, 0.2], "reliable_share": [0.3, 1.0]}
    method = HILTTA(model, method=EATA(model), candidates=table)

    assert method.candidates[1] == {"lr": 0.1, "reliable_share": 1.0}
    assert len(method.candidates) == 4


@pytest.mark.parametrize("kind", [EATA, SAR, partial(CoTTA, views=2)])
def test_around_other_methods_it_keeps_its_promises(kind):
    check_method(
        lambda model: HILTTA(
            model, method=kind(model), candidates={"lr": [1e-3, 1e-1]}, rate=TWO_LABELS
        )
    )


@pytest.mark.parametrize(
    "oracle", [lambda known: Delayed(known, rounds=2), lambda known: Skipping(known, rate=0.5)]
)
def test_late_and_missing_answers_are_no_trouble(oracle):
    labels = dict.fromkeys((f"{n}-{k}" for n in range(6) for k in range(8)), 0)
    method, ledger = chooser(), Ledger(Budget(7))
    run([tiny_batch(n) for n in range(6)], method, oracle(KnownLabels(labels)), ledger)

    assert 0 < ledger.received <= 7
    assert method.scores


def test_forgotten_samples_are_gone_from_everything_that_is_kept():
    method = chooser()
    queries = method.step(tiny_batch(0), Allowance(9)).queries
    method.forget(tiny_batch(0).samples)

    assert len(method.latest) == len(method.waiting) == 0
    assert method.learn(answers_to(queries)).updates == 0


def test_the_state_holds_the_scores():
    method = chooser()
    answered(method, tiny_batch(0))
    resumed = chooser()
    resumed.load_state_dict(copy.deepcopy(method.state_dict()))

    for each in (method, resumed):
        answered(each, tiny_batch(1))
    assert resumed.scores == method.scores
    assert torch.equal(weights(resumed), weights(method))


def test_it_is_built_from_tables():
    table = MethodTable(
        name="hiltta", method={"name": "tent", "updates": 2}, candidates={"lr": [0.1, 0.2]}
    )
    method = build_method(table, tiny_classifier(), 0)

    assert method.method.updates == 2
    assert len(method.candidates) == 2


def test_a_model_without_norm_layers_does_not_suit_tent():
    with pytest.raises(DoesNotApply, match="no normalisation layers"):
        HILTTA(nn.Sequential(nn.Linear(4, 3)))


@pytest.mark.parametrize("inside", [BatchNorm, SimATTA])
def test_the_method_inside_must_train_without_labels(inside):
    model = tiny_classifier()
    with pytest.raises(SettingError, match=f"trains without labels.*got {inside.__name__}"):
        HILTTA(model, method=inside(model))


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ({"speed": [1.0]}, "candidates of Tent can be for lr, momentum, .*updates.*, got 'speed'"),
        ({"lr": []}, r"candidates\.lr must be a list, got \[\]"),
        ({"lr": 3.0}, r"candidates\.lr must be a list, got 3\.0"),
        ({"lr": [-1.0]}, "Tent: lr must be greater than 0"),
        ({"updates": [0.5]}, "Tent: updates"),
    ],
)
def test_wrong_candidates_are_refused(candidates, message):
    with pytest.raises(SettingError, match=message):
        HILTTA(tiny_classifier(), candidates=candidates)


@pytest.mark.parametrize(("name", "value"), [("smoothing", 2), ("labelled_lr", -1)])
def test_wrong_settings_are_refused(name, value):
    with pytest.raises(SettingError, match=f"HILTTA: {name}"):
        HILTTA(tiny_classifier(), **{name: value})


def test_numbers_that_are_none_count_as_worse_than_all_others():
    assert normalised([3.0, 3.0, math.nan]) == [0.0, 0.0, 2.0]
