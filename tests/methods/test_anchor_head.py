import copy
import io

import pytest
import torch
from torch import nn

from attakit.engine import run
from attakit.errors import ModelError, SettingError, StateError
from attakit.label import Budget, KnownLabels, Ledger
from attakit.methods import AnchorHead, BatchNorm, Enhanced, SourceOnly
from attakit.nn import SmallCNN
from attakit.nn.seeding import seeded
from attakit.queries import Allowance, Answer
from attakit.records import Batch
from attakit.select import LabelRate
from attakit.testing import check_method, tiny_batch, tiny_classifier
from attakit.testing.methods import same_state

SETTINGS = {
    "no blending": {"source_share": 1.0},
    "the stream's statistics alone": {"source_share": 0.0},
    "a short window": {"window": 3},
    "no smoothing": {"smoothing": 0.0},
    "no memory": {"memory": 0},
    "no training": {"train_from": 0},
    "no hedge": {"hedge": 0.0},
    "a penalty that is given": {"penalty": 0.1},
    "penultimate features only": {"layers": []},
    "many labels": {"rate": LabelRate(per_1000=1000)},
    "a budget spread out": {"rate": LabelRate(spread_over=20)},
    "another seed": {"seed": 5},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_it_keeps_its_promises_with_other_settings(name):
    check_method(lambda model: AnchorHead(model, **SETTINGS[name]))


def shifted(step, size=40, classes=3, shift=4.0):
    """Two far blobs per class pair that the tiny model cannot tell apart, and their labels."""
    random = torch.Generator().manual_seed(step)
    labels = (torch.arange(size) + step) % classes
    inputs = shift * torch.eye(classes, 4)[labels] + torch.randn(size, 4, generator=random)
    names = tuple(f"{step}-{number}" for number in range(size))
    return Batch(step, names, inputs), dict(zip(names, labels.tolist(), strict=True))


def adapted(method, steps=8, budget=40, **settings):
    """Accuracy on a last batch, after a stream of shifted ones."""
    made = [shifted(step, **settings) for step in range(steps)]
    labels = {name: label for _, known in made for name, label in known.items()}
    ledger = Ledger(Budget(budget))
    run([batch for batch, _ in made], method, KnownLabels(labels), ledger)
    batch, known = shifted(99, **settings)
    right = method.predict(batch.inputs).logits.argmax(1) == torch.tensor(list(known.values()))
    return float(right.float().mean()), ledger


def answer(step, label=0):
    return [Answer(query, label, "me") for query in step.queries]


def test_a_few_labels_teach_it_classes_that_the_network_confuses():
    without, _ = adapted(AnchorHead(tiny_classifier()), budget=0)
    accuracy, ledger = adapted(AnchorHead(tiny_classifier()))
    assert accuracy > 0.8 > without + 0.2
    assert 0 < ledger.received <= 40


def test_single_samples_are_learned_from_too():
    method = AnchorHead(tiny_classifier(), rate=LabelRate(per_1000=150))
    _, ledger = adapted(method, steps=200, size=1, budget=30)
    batch, known = shifted(999)
    given = [int(method.predict(row[None]).logits.argmax()) for row in batch.inputs]
    right = [one == other for one, other in zip(given, known.values(), strict=True)]
    assert 10 < ledger.received <= 30
    assert sum(right) > 0.8 * len(right)


def test_without_trained_stages_the_network_never_changes():
    method, fresh = AnchorHead(tiny_classifier(), train_from=0), tiny_classifier()
    adapted(method)
    for name, value in method.model.model.state_dict().items():
        assert torch.equal(value, fresh.state_dict()[name])


def test_without_labels_blending_and_smoothing_it_is_the_source_model():
    model, batch = tiny_classifier(), tiny_batch()
    method = AnchorHead(model, source_share=1.0, smoothing=0.0, competing=False)
    expected = SourceOnly(model).predict(batch.inputs).logits.softmax(1)
    assert torch.allclose(
        method.step(batch, Allowance(0)).prediction.logits.exp(), expected, atol=1e-6
    )


def test_with_the_streams_statistics_alone_it_is_batch_norm():
    model, (batch, _) = tiny_classifier(), shifted(0)
    method = AnchorHead(model, source_share=0.0, smoothing=0.0, competing=False)
    expected = BatchNorm(model).predict(batch.inputs).logits.softmax(1)
    assert torch.allclose(
        method.step(batch, Allowance(0)).prediction.logits.exp(), expected, atol=1e-5
    )


def test_the_budget_is_spread_over_the_samples():
    _, ledger = adapted(AnchorHead(tiny_classifier()), budget=30)
    assert ledger.received == 30


def test_no_inputs_are_kept_and_the_state_is_small():
    method = AnchorHead(SmallCNN())
    random = torch.Generator().manual_seed(0)
    images = torch.rand(40, 1, 28, 28, generator=random)
    step = method.step(Batch(0, tuple(map(str, range(40))), images), Allowance(10))
    method.learn(answer(step))
    assert method.anchors.rows.inputs.numel() == 0
    buffer = io.BytesIO()
    torch.save(method.state_dict(), buffer)
    weights = sum(each.numel() for each in SmallCNN().parameters())
    assert len(step.queries) == 10
    assert buffer.tell() < 4 * weights
    assert set(method.state_dict()) == set(AnchorHead.stateful)


def test_forgetting_a_sample_is_exact():
    batch, known = shifted(0)
    method, never = AnchorHead(tiny_classifier()), AnchorHead(tiny_classifier())
    step = method.step(batch, Allowance(10))
    never.step(batch, Allowance(10))
    gone = step.queries[0].sample
    answers = [Answer(query, known[query.sample], "me") for query in step.queries]
    method.learn(answers)
    never.learn([Answer(step.queries[0], None, "skipped"), *answers[1:]])
    method.forget([gone])
    never.forget([gone])
    assert gone not in method.anchors
    assert gone not in method.recent.samples
    one, other = method.state_dict(), never.state_dict()
    del one["anchors"]["seen"], other["anchors"]["seen"]  # how many ever came: no trace of which
    assert same_state(one, other)


def test_late_and_missing_answers_are_fine():
    method = AnchorHead(tiny_classifier())
    steps = [method.step(shifted(number)[0], Allowance(6)) for number in range(3)]
    assert method.learn([]).updates == 0
    method.learn(answer(steps[2], 1))
    method.learn([Answer(query, None, "skipped") for query in steps[1].queries])
    assert len(method.anchors) == len(steps[2].queries)
    assert len(method.waiting) == len(steps[0].queries)


def test_a_new_domain_is_noticed_and_gets_more_questions():
    counts = {}
    for at_drift in (0, 8):
        rate = LabelRate(first=0, at_drift=at_drift)
        method = AnchorHead(tiny_classifier(), source_share=1.0, rate=rate)
        for number in range(8):
            inputs = shifted(number, shift=0.0 if number < 5 else 6.0)[0].inputs
            names = tuple(f"{number}-{place}" for place in range(40))
            step = method.step(Batch(number, names, inputs), Allowance(20))
            method.learn(answer(step))
            counts[at_drift, number] = len(step.queries)
        assert step.numbers["domains"] == 2
    assert counts[8, 5] > counts[0, 5] + 5


def test_only_unsure_samples_of_tiny_batches_are_asked_about():
    rate = LabelRate(first=0, per_1000=500)
    method = AnchorHead(tiny_classifier(), rate=rate, smoothing=0.0)
    asked, entropies = [], []
    for number in range(80):
        step = method.step(tiny_batch(number, size=1), Allowance(99))
        chances = step.prediction.logits.exp()
        entropies.append(float(-(chances * step.prediction.logits).sum()))
        if step.queries and number >= 20:
            asked.append(entropies[-1])
    average = sum(entropies[20:]) / len(entropies[20:])
    assert asked
    assert sum(asked) / len(asked) > average


def test_models_without_batch_norm_and_with_one_logit_adapt():
    with seeded(0, "model"):
        plain = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        single = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1))
    assert adapted(AnchorHead(plain))[0] > 0.8
    assert adapted(AnchorHead(single), classes=2)[0] > 0.8


def test_it_goes_on_only_with_the_model_it_was_saved_with():
    method = AnchorHead(tiny_classifier())
    adapted(method)
    state = copy.deepcopy(method.state_dict())
    with pytest.raises(StateError, match="belongs to another model"):
        AnchorHead(tiny_classifier(seed=1)).load_state_dict(state)


def test_limits_per_class_and_replayed_questions_are_respected():
    batch, _ = shifted(0)
    guesses = AnchorHead(tiny_classifier()).predict(batch.inputs).logits.argmax(1).tolist()
    one_class = Allowance(9, per_class={guesses[0]: 2})
    step = AnchorHead(tiny_classifier()).step(batch, one_class)
    places = [batch.samples.index(query.sample) for query in step.queries]
    assert [guesses[place] for place in places] == [guesses[0]] * 2
    again = AnchorHead(tiny_classifier()).step(batch, Allowance(9, repeat=batch.samples[:3]))
    assert {query.sample for query in again.queries} == set(batch.samples[:3])


def test_a_network_that_another_method_trains_is_saved_with_its_weights():
    model = tiny_classifier()
    inside = AnchorHead(model)
    assert inside.state_dict()["network"]["weights"] is None
    Enhanced(model, method=inside)
    assert set(inside.state_dict()["network"]["weights"]) == set(model.state_dict())


def test_layers_can_be_named():
    names = ["block2.0"]
    method = AnchorHead(SmallCNN(), layers=names)
    method.step(Batch(0, ("a", "b"), torch.zeros(2, 1, 28, 28)), Allowance(0))
    assert method.layers == names
    with pytest.raises(ModelError, match="no layer named 'block9'"):
        AnchorHead(SmallCNN(), layers=["block9"]).predict(torch.zeros(2, 1, 28, 28))


@pytest.mark.parametrize(
    "settings",
    [
        {"hedge": 1.5},
        {"smoothing": -1},
        {"source_share": 2},
        {"window": 0},
        {"layers": "block3"},
        {"penalty": "strong"},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(SettingError):
        AnchorHead(tiny_classifier(), **settings)


def test_yes_no_answers_teach_it_too_and_a_no_is_worth_less_than_a_class():
    without, _ = adapted(AnchorHead(tiny_classifier()), budget=0)
    accuracy, ledger = adapted(AnchorHead(tiny_classifier(), question="yes_no"))

    assert accuracy > without + 0.1
    assert ledger.counts.keys() == {"yes", "no"}


def test_a_class_that_is_ruled_out_gets_less_likely():
    method = AnchorHead(tiny_classifier(), question="yes_no", hedge=0.0, smoothing=0.0)
    batch, _ = shifted(0)
    (query, *_) = method.step(batch, Allowance(4)).queries
    row = batch.samples.index(query.sample)
    before = method.predict(batch.inputs).logits.softmax(dim=1)[row, query.proposed]

    method.learn([Answer.no(query, "me")])

    after = method.predict(batch.inputs).logits.softmax(dim=1)[row, query.proposed]
    assert after < before / 2


def test_a_state_from_before_there_were_experts_still_loads():
    method = AnchorHead(tiny_classifier())
    method.learn(answer(method.step(tiny_batch(), Allowance(4))))
    state = copy.deepcopy(method.state_dict())
    del state["experts"], state["mix"]
    again = AnchorHead(tiny_classifier())
    again.load_state_dict(state)
    assert len(again.anchors) == len(method.anchors)


def in_runs(step, size=40):
    """Batches of one class each, which overlaps much with the other."""
    random = torch.Generator().manual_seed(step)
    label = step // 2 % 2
    inputs = torch.eye(3, 4)[[label] * size] + 1.5 * torch.randn(size, 4, generator=random)
    names = tuple(f"{step}-{number}" for number in range(size))
    return Batch(step, names, inputs), dict.fromkeys(names, label)


def after_runs(allowance):
    """Return a method after 20 batches of one class each, and its accuracy on the last ten."""
    last = nn.Linear(4, 3, bias=False)
    last.weight.data = torch.eye(3, 4)
    method = AnchorHead(nn.Sequential(nn.Flatten(), last), rate=LabelRate(per_1000=100))
    right = []
    for step in range(20):
        batch, known = in_runs(step)
        found = method.step(batch, allowance)
        right.append((found.prediction.logits.argmax(dim=1) == step // 2 % 2).float().mean())
        method.learn([Answer(query, known[query.sample], "me") for query in found.queries])
    return method, float(torch.stack(right[10:]).mean())


def test_where_classes_come_in_runs_labels_teach_it_to_follow_the_mix_of_a_batch():
    method, _ = after_runs(Allowance(100))
    assert method.experts.weights()[0] < 0.1


def test_it_sees_without_labels_that_classes_come_in_runs():
    method, right = after_runs(Allowance(0))
    assert sum(method.mix.evidence) > 4
    inputs = torch.stack([in_runs(step)[0].inputs for step in range(10, 20)])
    classes = torch.arange(10, 20)[:, None] // 2 % 2
    assert right > (inputs[:, :, :3].argmax(dim=2) == classes).float().mean() + 0.1
