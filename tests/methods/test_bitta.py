"""BiTTA: what it descends on, worked out by hand, and what becomes of each answer."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from attakit.errors import SettingError
from attakit.methods import BiTTA
from attakit.queries import Allowance, Answer
from attakit.records import Batch
from attakit.testing import tiny_batch, tiny_classifier


@pytest.fixture
def method():
    return BiTTA(tiny_classifier(), lr=0.01)


def chance(method, batch, query):
    row = batch.samples.index(query.sample)
    return float(method.predict(batch.inputs).logits.softmax(dim=1)[row, query.proposed])


def scale_network(scale, *more):
    """One feature in, and the logits (feature, 0) out."""
    head = nn.Linear(1, 2, bias=False)
    head.weight.data = torch.tensor([[1.0], [0.0]])
    first = nn.Linear(1, 1, bias=False)
    first.weight.data.fill_(scale)
    return nn.Sequential(first, *more, head)


def test_chances_are_means_over_passes_with_dropout():
    method = BiTTA(scale_network(1.0), dropout=0.5, passes=4000)
    inputs = torch.tensor([[1.5]])
    method.predict(inputs)

    chances = method._chances(inputs, "test")

    # The feature is either dropped or doubled: logits (0, 0) or (3, 0).
    expected = (0.5 + 1 / (1 + math.exp(-3))) / 2
    assert chances[0, 0].item() == pytest.approx(expected, abs=0.02)


def test_dropout_layers_of_the_model_are_used_where_there_are_some():
    method = BiTTA(scale_network(1.0, nn.Dropout(0.25)), dropout=0.9, passes=4000)
    inputs = torch.tensor([[1.5]])
    method.predict(inputs)

    chances = method._chances(inputs, "test")

    expected = 0.25 * 0.5 + 0.75 / (1 + math.exp(-2))  # kept ones become 1.5 / 0.75
    assert chances[0, 0].item() == pytest.approx(expected, abs=0.02)
    assert not any(layer.training for layer in method.model.modules())


def losses_of(method, monkeypatch):
    """The losses of a right, a wrong and two unlabelled samples, of which one agrees."""
    batch = tiny_batch(size=8)
    step = method.step(batch, Allowance(2))
    yes, no = step.queries
    method._remember(method.waiting.resolve([Answer.yes(yes, "me"), Answer.no(no, "me")]))
    others = method._unasked().take([0, 1])
    own, other = method.predict(others.inputs).logits.argmax(dim=1).tolist()
    chances = torch.full((4, 3), 0.05)
    chances[0, yes.proposed], chances[1, no.proposed] = 0.8, 0.6
    chances[2, own], chances[3, (other + 1) % 3] = 0.9, 0.9
    monkeypatch.setattr(method, "_chances", lambda inputs, purpose: chances)
    plain = method.predict(others.inputs)
    logits = torch.cat([torch.zeros(2, 3), plain.logits])
    monkeypatch.setattr(method.model, "forward", lambda inputs: replace(plain, logits=logits))
    parts = {
        "right_loss": method.right.rows,
        "wrong_loss": method.wrong.rows,
        "agreement_loss": others,
    }
    return {name: loss.item() for name, loss in method._losses(parts, "test").items()}


def test_the_losses_are_reward_penalty_and_agreement(method, monkeypatch):
    def bounded(chance):  # the probabilities are taken for logits
        return chance - math.log(math.exp(chance) + 2 * math.exp(0.05))

    assert losses_of(method, monkeypatch) == pytest.approx(
        {
            "right_loss": -bounded(0.8),
            "wrong_loss": bounded(0.6),
            "agreement_loss": -bounded(0.9),
        },
        rel=1e-5,
    )


def test_the_losses_of_the_paper_are_logarithms(monkeypatch):
    method = BiTTA(tiny_classifier(), objective="log")

    assert losses_of(method, monkeypatch) == pytest.approx(
        {
            "right_loss": -math.log(0.8),
            "wrong_loss": math.log(0.6),
            "agreement_loss": -math.log(0.9),
        },
        rel=1e-5,
    )


@pytest.mark.parametrize("objective", ["bounded", "log"])
def test_a_class_that_is_ruled_out_is_not_pushed_further(objective, monkeypatch):
    method = BiTTA(tiny_classifier(), objective=objective)
    step = method.step(tiny_batch(), Allowance(1))
    method._remember(method.waiting.resolve([Answer.no(step.queries[0], "me")]))
    logits = torch.tensor([[-60.0, 1.0, 1.0]]).roll(step.queries[0].proposed, dims=1)
    logits.requires_grad_()
    monkeypatch.setattr(method, "_chances", lambda inputs, purpose: logits.softmax(dim=1))

    method._losses({"wrong_loss": method.wrong.rows}, "test")["wrong_loss"].backward()

    assert logits.grad.abs().sum() < 1e-6


def test_yes_makes_the_proposed_class_likelier_and_no_less_likely():
    after = {}
    for kind in (Answer.yes, Answer.no):
        method = BiTTA(tiny_classifier(), lr=0.02, epochs=10)
        batch = tiny_batch()
        (query,) = method.step(batch, Allowance(1)).queries
        before = chance(method, batch, query)
        method.latest.adapted()  # without the agreement of the others
        method.learn([kind(query, "me")])
        after[kind] = chance(method, batch, query) - before

    assert after[Answer.yes] > 0.01
    assert after[Answer.no] < -0.01


def test_it_asks_where_dropout_makes_its_own_answer_least_likely(method):
    batch = tiny_batch()
    step = method.step(batch, Allowance(3))
    sureness = method.selector.sureness

    assert [query.sample for query in step.queries] == sorted(batch.samples, key=sureness.get)[
        : len(step.queries)
    ]


def test_only_samples_that_were_not_asked_about_can_agree(method):
    batch = tiny_batch()
    step = method.step(batch, Allowance(2))

    asked = {query.sample for query in step.queries}
    assert set(method._unasked().samples) == set(batch.samples) - asked


def test_the_update_waits_for_the_answers_to_its_batch(method):
    step = method.step(tiny_batch(), Allowance(2))

    assert method.learn([]).updates == 0
    assert method.latest.due
    assert method.learn([Answer.no(query, "me") for query in step.queries]).updates == 3
    assert not method.latest.due


def test_without_answers_it_adapts_when_the_next_batch_comes(method):
    before = method.state_dict()["model"]
    before = {name: value.clone() for name, value in before.items()}
    method.step(tiny_batch(0), Allowance(2))
    method.learn([])
    method.step(tiny_batch(1), Allowance(0))

    after = method.state_dict()["model"]
    assert method.learn_count == 1
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_memories_keep_the_newest():
    method = BiTTA(tiny_classifier(), memory=2, rate=None)
    asked = []
    for number in range(3):
        step = method.step(tiny_batch(number), Allowance(1))
        asked += [query.sample for query in step.queries]
        method.learn([Answer.no(query, "me") for query in step.queries])

    assert method.wrong.rows.samples == tuple(asked[-2:])
    assert len(method.right) == 0


def test_a_class_is_a_reward_and_what_it_cannot_use_is_left_out(method):
    first, second, third = (method.step(tiny_batch(n), Allowance(1)).queries[0] for n in range(3))
    method.learn(
        [
            Answer(first, (first.proposed + 1) % 3, "me"),
            Answer(second, None, "me", excluded=(0, 1)),
            Answer(third, None, "me", chances=(0.2, 0.2, 0.6)),
        ]
    )

    assert method.right.rows.labels.tolist() == [(first.proposed + 1) % 3]
    assert len(method.wrong) == 0


def test_statistics_move_towards_each_batch():
    method = BiTTA(tiny_classifier(), norm_momentum=0.3)
    norm = next(layer for layer in method.model.modules() if isinstance(layer, nn.BatchNorm1d))
    linear = next(layer for layer in method.model.modules() if isinstance(layer, nn.Linear))
    before, batch = norm.running_mean.clone(), tiny_batch()
    with torch.no_grad():
        mean = linear(batch.inputs).mean(dim=0)

    method.step(batch, Allowance(0))

    assert torch.allclose(norm.running_mean, 0.7 * before + 0.3 * mean, atol=1e-5)


def test_a_single_sample_moves_no_statistics(method):
    before = method.model.state_dict()["model.1.running_mean"].clone()
    batch = tiny_batch()

    method.step(Batch(0, batch.samples[:1], batch.inputs[:1]), Allowance(0))

    assert torch.equal(method.model.state_dict()["model.1.running_mean"], before)


def test_it_asks_about_what_the_moved_statistics_predict():
    method, batch = BiTTA(tiny_classifier(), norm_momentum=1.0), tiny_batch(3)

    step = method.step(batch, Allowance(3))

    moved = method.predict(batch.inputs).logits.argmax(dim=1).tolist()
    for query in step.queries:
        assert query.proposed == moved[batch.samples.index(query.sample)]


def test_learning_leaves_the_stored_statistics_alone(method):
    queries = method.step(tiny_batch(), Allowance(2)).queries
    before = method.model.state_dict()["model.1.running_mean"].clone()

    method.learn([Answer.no(query, "me") for query in queries])

    assert torch.equal(method.model.state_dict()["model.1.running_mean"], before)


def test_a_dropout_of_nothing_is_refused():
    with pytest.raises(SettingError, match="dropout must be greater than 0"):
        BiTTA(tiny_classifier(), dropout=0.0)
