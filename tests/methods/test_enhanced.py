"""Enhanced TTA: what labelled samples do to the method inside, by hand where it can be."""

import copy
import math
from itertools import chain

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD

from attakit.engine import run
from attakit.errors import ModelError, SettingError, StateError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, Skipping
from attakit.methods import METHODS, BatchNorm, CoTTA, Enhanced, SimATTA, SourceOnly, Tent
from attakit.queries import Allowance, Answer, SampleId
from attakit.records import Batch
from attakit.select import IncrementalClustering, LabelRate
from attakit.testing import check_method, tiny_batch, tiny_classifier
from attakit.testing.methods import answers_to, same_state
from attakit.train.balanced import BalancedTrainer


def linear():
    """Logits are the inputs: the weight is the identity."""
    layer = nn.Linear(2, 2, bias=False)
    nn.init.eye_(layer.weight)
    return nn.Sequential(layer)


def batch_of(inputs, step=0):
    return Batch(step, tuple(SampleId(f"{step}-{n}") for n in range(len(inputs))), inputs)


def around(kind, model=None, *, inside=None, **settings):
    model = tiny_classifier() if model is None else model
    return Enhanced(model, method=kind(model, **(inside or {})), **settings)


def asking(per_batch=8):
    """The pace for a number of labels in each tiny batch of eight."""
    return LabelRate(per_1000=125 * per_batch, first=0)


def sigmoid(number):
    return 1 / (1 + math.exp(-number))


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_around_any_method_it_keeps_its_promises(name, keep):
    check_method(lambda model: Enhanced(model, method=METHODS[name](model), keep=keep))


def test_it_keeps_its_promises_with_several_updates_and_another_selector():
    check_method(
        lambda model: Enhanced(
            model, selector=IncrementalClustering(inits=1), keep=True, updates=3, batch_size=2
        )
    )


def test_it_may_stand_around_itself():
    check_method(lambda model: Enhanced(model, method=Enhanced(model), keep=True))


# Cross-entropy of the label 1 at x = (1, 0): the logits are (1, 0), p = (σ(1), 1 - σ(1)), and
# ∂L/∂W = (p - (0, 1))·xᵀ = ((σ(1), 0), (-σ(1), 0)). Of the label 0 at x' = (0, 2) with logits
# (0, 2) it is (p' - (1, 0))·x'ᵀ = ((0, -2σ(2)), (0, 2σ(2))). The loss is their mean.
P, Q = sigmoid(1), sigmoid(2)
GRADIENT = torch.tensor([[P / 2, -Q], [-P / 2, Q]])


def test_one_labelled_update_follows_the_gradient_worked_out_by_hand():
    method = around(SourceOnly, linear(), rate=asking(), lr=0.5, momentum=0.0)
    batch = batch_of(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))

    step = method.step(batch, Allowance(2))
    labels = {"0-0": 1, "0-1": 0}
    training = method.learn([Answer(q, labels[q.sample], "me") for q in step.queries])

    assert torch.allclose(method.model.model[0].weight, torch.eye(2) - 0.5 * GRADIENT)
    assert torch.equal(step.prediction.logits, batch.inputs)
    assert training.updates == 1
    loss = (math.log(1 + math.e) + math.log(1 + math.exp(2))) / 2
    assert training.numbers["labelled_loss"] == pytest.approx(loss)


def test_momentum_is_that_of_the_method_inside():
    method = around(Tent, inside={"lr": 0.1, "momentum": 0.5}, rate=asking())
    expected = copy.deepcopy(method.method)
    batch = tiny_batch()

    step = method.step(batch, Allowance(8))
    method.learn(answers_to(step.queries))

    expected.step(batch, Allowance(0))
    labels = {answer.query.sample: answer.label for answer in answers_to(step.queries)}
    loss = F.cross_entropy(
        expected.model(batch.inputs).logits, torch.tensor([labels[name] for name in batch.samples])
    )
    expected.optimizer.zero_grad()
    loss.backward()
    expected.optimizer.step()
    assert method.optimizer is method.method.optimizer
    for one, other in zip(method.model.parameters(), expected.model.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_labelled_sample_is_normalised_in_the_company_of_its_batch():
    model, batch = tiny_classifier(), tiny_batch()
    method = around(BatchNorm, model, rate=asking(1), lr=0.5, momentum=0.0)

    (query,) = method.step(batch, Allowance(8)).queries
    method.learn([Answer(query, 2, "me")])

    expected = copy.deepcopy(model).train()  # torch's own batch statistics
    row = batch.samples.index(query.sample)
    F.cross_entropy(expected(batch.inputs)[[row]], torch.tensor([2])).backward()
    SGD(expected.parameters(), lr=0.5).step()
    for one, other in zip(method.adapted_model.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_late_sample_is_normalised_in_the_company_of_the_latest_batch():
    model = tiny_classifier()
    method = around(BatchNorm, model, rate=LabelRate(per_1000=0, first=1), lr=0.5, momentum=0.0)

    (query,) = method.step(tiny_batch(0), Allowance(8)).queries
    method.step(tiny_batch(1), Allowance(8))
    method.learn([Answer(query, 2, "me")])

    expected = copy.deepcopy(model).train()
    row = tiny_batch(0).samples.index(query.sample)
    together = torch.cat([tiny_batch(0).inputs[[row]], tiny_batch(1).inputs])
    F.cross_entropy(expected(together)[:1], torch.tensor([2])).backward()
    SGD(expected.parameters(), lr=0.5).step()
    for one, other in zip(method.adapted_model.parameters(), expected.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_one_label_is_enough_where_batch_norm_has_no_stored_statistics():
    layers = [nn.Linear(4, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 3)]
    method = around(SourceOnly, nn.Sequential(*layers), rate=asking(1))

    step = method.step(tiny_batch(), Allowance(1))

    assert method.learn(answers_to(step.queries)).updates == 1


def test_the_model_is_that_of_the_method_inside_and_no_further_copy():
    method = around(CoTTA)

    parts = [part for part in vars(method).values() if isinstance(part, nn.Module)]
    assert [part is method.method.model for part in parts] == [True]


def test_no_batch_is_held_where_samples_do_not_depend_on_each_other():
    method = around(SourceOnly)

    method.step(tiny_batch(), Allowance(2))

    assert len(method.latest) == 0


def watched(**settings):
    """A method, and a list of the names that each of its updates trains on."""
    method = around(SourceOnly, **settings)
    seen, update = [], method._update
    method._update = lambda rows: seen.append(list(rows.samples)) or update(rows)
    return method, seen


def turn(method, number, count):
    step = method.step(tiny_batch(number), Allowance(count))
    method.learn(answers_to(step.queries))
    return [query.sample for query in step.queries]


def test_samples_that_are_not_kept_are_used_once_and_dropped():
    method, seen = watched(rate=asking(), batch_size=2)

    asked = turn(method, 0, 5)
    assert [len(names) for names in seen] == [2, 2, 1]
    assert sorted(chain(*seen)) == sorted(asked)

    seen.clear()
    turn(method, 1, 0)
    assert seen == []
    assert len(method.kept) == len(method.waiting) == 0


def test_each_update_is_another_pass_over_new_samples():
    method, seen = watched(rate=asking(), batch_size=2, updates=3)

    asked = turn(method, 0, 3)

    assert len(seen) == 6
    assert sorted(chain(*seen)) == sorted(asked * 3)


def test_kept_samples_fill_up_every_update():
    method, seen = watched(rate=asking(), batch_size=4, keep=True)
    first = turn(method, 0, 3)
    (second,) = turn(method, 1, 1)
    turn(method, 2, 0)

    assert sorted(seen[0]) == sorted(first)
    assert seen[1][0] == second
    assert sorted(seen[1][1:]) == sorted(first)
    assert sorted(seen[2]) == sorted([*first, second])
    assert len(seen) == 3


def test_an_update_never_holds_more_than_the_batch_size():
    method, seen = watched(rate=asking(), batch_size=4, keep=True)
    for number in range(4):
        turn(method, number, 3)

    assert [len(names) for names in seen] == [3, 4, 4, 4]
    assert all(len(set(names)) == len(names) for names in seen)


def test_the_teacher_of_cotta_follows_labelled_updates():
    method = around(CoTTA, inside={"teacher_momentum": 0.5, "restore_probability": 0.0})
    step = method.step(tiny_batch(), Allowance(3))
    teacher, student = (
        copy.deepcopy(each.state_dict()) for each in (method.method.teacher, method.model)
    )

    method.learn(answers_to(step.queries))

    assert method.method.update_count == 2
    after = method.model.state_dict()
    for name, value in method.method.teacher.state_dict().items():
        assert torch.allclose(value.float(), (teacher[name] + after[name]).float() / 2)
    assert not same_state(student, after)
    assert method.adapted_model is method.method.teacher.model


def test_a_method_that_trains_nothing_trains_what_is_named():
    model = tiny_classifier()
    method = around(SourceOnly, model, trainable="head", rate=asking(), lr=0.1)

    turn(method, 0, 3)

    before, after = model.state_dict(), method.adapted_model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"3.weight", "3.bias"}


def test_a_method_that_trains_something_goes_on_with_that():
    model = tiny_classifier()
    inside = {"trainable": "norm", "norm": "frozen"}
    method = around(SimATTA, model, inside=inside, rate=asking(), lr=0.1)

    turn(method, 0, 3)

    before, after = model.state_dict(), method.adapted_model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"1.weight", "1.bias"}


def test_running_statistics_follow_labelled_samples():
    inside = {"norm": "running", "trainer": BalancedTrainer(max_updates=1)}
    method = around(SimATTA, inside=inside, rate=asking())

    turn(method, 0, 4)

    assert method.adapted_model[1].num_batches_tracked == 1


def test_late_answers_count_and_skipped_ones_do_not():
    method, seen = watched(rate=asking(2), keep=True)
    queries = [method.step(tiny_batch(number), Allowance(2)).queries for number in range(3)]
    assert len(method.waiting) == 6

    assert method.learn([]).updates == 0
    assert method.learn([Answer(query, None, "skipped") for query in queries[1]]).updates == 0
    late = [*queries[2], *queries[0]]
    assert method.learn(answers_to(late)).updates == 1
    assert method.learn(answers_to(queries[1])).numbers["kept"] == 4  # too late: it was skipped

    assert set(seen[0]) == {query.sample for query in late}
    assert len(method.waiting) == 0


@pytest.mark.parametrize("keep", [False, True])
def test_a_sample_with_a_label_is_not_asked_about_again(keep):
    method = around(Tent, rate=asking(), keep=keep)
    turn(method, 0, 5)

    again = method.step(tiny_batch(0), Allowance(8))

    assert len(again.queries) == 3
    assert len(again.choice.candidates) == 3


def test_a_sample_that_waits_is_not_asked_about_again():
    method = around(Tent, rate=asking())
    method.step(tiny_batch(0), Allowance(5))

    assert len(method.step(tiny_batch(0), Allowance(8)).queries) == 3


STREAM = [tiny_batch(number) for number in range(6)]
LABELS = {sample: n % 3 for batch in STREAM for n, sample in enumerate(batch.samples)}


@pytest.mark.parametrize("name", METHODS)
def test_any_method_gets_exactly_the_labels_that_were_matched(name):
    method = around(METHODS[name], rate=LabelRate(first=0))
    ledger = Ledger(Budget(7))

    run(STREAM, method, KnownLabels(LABELS), ledger)

    assert ledger.received == 7


@pytest.mark.parametrize("wrap", [lambda o: Delayed(o, rounds=2), lambda o: Skipping(o, rate=0.5)])
def test_labels_never_exceed_the_budget(wrap):
    method = around(Tent, rate=asking(3))
    ledger = Ledger(Budget(5))

    run(STREAM, method, wrap(KnownLabels(LABELS)), ledger)

    assert ledger.received <= 5
    assert ledger.budget.spent <= 5


def test_labels_make_the_model_fit_them():
    method = around(SourceOnly, rate=asking(4), keep=True, updates=30, lr=0.1)
    run(STREAM, method, KnownLabels(LABELS), Ledger(Budget(8)))

    rows = method.kept.rows
    before = F.cross_entropy(tiny_classifier().eval()(rows.inputs), rows.labels)
    after = F.cross_entropy(method.predict(rows.inputs).logits, rows.labels)
    assert after < before / 2


def test_a_state_of_another_method_inside_is_refused():
    state = around(SourceOnly).state_dict()

    with pytest.raises(StateError, match="Tent: the saved state has"):
        around(Tent).load_state_dict(state)


def test_a_loss_that_is_no_number_is_refused():
    method = around(SourceOnly, rate=asking())
    step = method.step(batch_of(torch.full((2, 4), math.nan)), Allowance(2))

    with pytest.raises(ModelError, match="Enhanced: the loss became nan"):
        method.learn(answers_to(step.queries))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "tent"}, r"Enhanced: method must be a method object .*got 'tent'"),
        ({"updates": 0}, "Enhanced: updates must be at least 1"),
        ({"batch_size": 0}, "Enhanced: batch_size must be at least 1"),
        ({"lr": 0}, "Enhanced: lr must be greater than 0"),
        ({"momentum": 2}, "Enhanced: momentum must be at least 0 and at most 1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(SettingError, match=message):
        Enhanced(tiny_classifier(), **settings)
