import copy

import pytest
import torch

from attakit.methods import AnchorHead
from attakit.methods import late_training as late_training_module
from attakit.nn import SmallCNN
from attakit.nn.head_files import load_model, save_difference
from attakit.nn.seeding import seeded
from attakit.queries import Allowance, Answer
from attakit.records import Batch
from attakit.select import LabelRate
from attakit.testing.methods import same_state

SIZE, SIDE = 20, 12


@pytest.fixture
def helps(monkeypatch):
    """Let training count as a gain without the comparison."""

    class Verdict:
        value = True

    monkeypatch.setattr(late_training_module, "gain_of_training", lambda *_, **__: (0.1, 0.0))
    monkeypatch.setattr(late_training_module, "is_clear", lambda *_: Verdict.value)
    return Verdict


def network():
    with seeded(0, "model"):
        return SmallCNN(classes=3, width=4, hidden=8).eval()


def method(**settings):
    """It trains with few anchors already, unless settings say otherwise."""
    return AnchorHead(
        network(), rate=LabelRate(per_1000=300, first=2), **{"train_from": 12, **settings}
    )


def batch(step):
    random = torch.Generator().manual_seed(step)
    images = torch.rand(SIZE, 1, SIDE, SIDE, generator=random)
    for place in range(SIZE):
        images[place, 0, 4 * (place % 3) : 4 * (place % 3) + 3] += 1
    return Batch(step, tuple(f"{step}-{place}" for place in range(SIZE)), images)


def answers(step):
    return [Answer(each, int(each.sample.split("-")[1]) % 3, "me") for each in step.queries]


def run(adapting, steps, first=0):
    for step in range(first, first + steps):
        adapting.learn(answers(adapting.step(batch(step), Allowance(99))))
    return adapting


def weights(adapting):
    return {name: each.clone() for name, each in adapting.model.model.named_parameters()}


def differ(one, other):
    return {name for name in one if not torch.equal(one[name], other[name])}


def test_with_enough_labels_the_last_stages_train_and_the_first_stays(helps):
    adapting = run(method(), 1)
    before = weights(adapting)
    assert adapting.late.trained is None
    changed = differ(before, weights(run(adapting, 2, first=1)))
    assert adapting.late.trained is not None
    assert "block2.0.weight" in changed
    assert not any(name.startswith("block1") for name in changed)
    assert not any(each.requires_grad for each in adapting.model.parameters())


def test_the_dimension_of_the_head_is_left_out_while_trained_stages_are_installed(helps):
    adapting = method()
    numbers = []
    for step in range(3):
        asked = adapting.step(batch(step), Allowance(99))
        numbers.append(adapting.learn(answers(asked)).numbers)
    assert [each["trained_stages"] for each in numbers] == [0.0, 1.0, 1.0]
    assert ["dimension" in each for each in numbers] == [True, False, False]
    assert numbers[0]["dimension"] == adapting.head.dimension


def test_anchors_keep_activations_and_no_inputs(helps):
    rows = run(method(), 1).anchors.rows
    assert rows.inputs.numel() == 0
    assert rows.activations.dtype == torch.float16
    assert run(method(train_from=0), 1).anchors.rows.activations is None


def test_features_of_anchors_and_of_waiting_samples_are_those_of_the_trained_stages(helps):
    adapting = method()
    held = adapting.step(batch(0), Allowance(99))
    run(adapting, 3, first=1)
    stored = adapting.anchors.rows
    expected = adapting.late._look_again(stored.activations)
    assert torch.allclose(stored.features, expected.features, atol=1e-2)
    assert torch.allclose(stored.logits, expected.logits, atol=1e-2)
    assert len(adapting.waiting) == len(held.queries)
    adapting.learn(answers(held))
    assert len(adapting.waiting) == 0


def test_where_training_does_not_help_the_sources_stages_come_back(helps):
    adapting = run(method(), 3)
    assert adapting.late.trained is not None
    helps.value = False
    adapting.late.compared_at = 0
    run(adapting, 4, first=3)
    assert adapting.late.trained is None
    assert not differ(weights(adapting), dict(network().named_parameters()))


def test_a_saved_state_continues_exactly(helps):
    adapting = run(method(), 3)
    other = method()
    other.load_state_dict(copy.deepcopy(adapting.state_dict()))
    assert not differ(weights(adapting), weights(other))
    for each in (adapting, other):
        run(each, 4, first=3)
    assert same_state(adapting.state_dict(), other.state_dict())
    inputs = batch(9).inputs
    assert torch.equal(adapting.predict(inputs).logits, other.predict(inputs).logits)


def test_forgetting_a_sample_trains_without_it(helps):
    adapting = run(method(), 3)
    before = weights(adapting)
    gone = adapting.anchors.rows.samples[0]
    adapting.forget([gone])
    assert gone not in adapting.anchors
    assert differ(before, weights(adapting))
    adapting.forget(list(adapting.anchors.rows.samples[5:]))
    assert not differ(weights(adapting), dict(network().named_parameters()))


def test_a_model_that_was_taken_out_stays_and_a_saved_one_has_the_trained_stages(helps, tmp_path):
    adapting = run(method(), 1)
    inputs = batch(9).inputs
    taken = adapting.adapted_model
    with torch.no_grad():
        before = taken(inputs)
        now = run(adapting, 2, first=1).adapted_model
        assert torch.equal(taken(inputs), before)
        save_difference(now, network(), tmp_path / "version.safetensors")
        loaded = load_model(network(), tmp_path / "version.safetensors")
        assert torch.allclose(loaded(inputs), now(inputs), atol=1e-6)
        assert not torch.allclose(now(inputs), before)


def test_the_sources_answer_stays_at_hand_for_samples_that_look_like_home(helps):
    adapting = run(method(), 3)
    inputs = batch(9).inputs
    with torch.no_grad():
        expected = network()(inputs)
    assert adapting.late.trained is not None
    assert torch.allclose(adapting.late.source_logits(inputs, inputs), expected, atol=1e-5)
    assert method().late.source_logits(inputs, inputs) is inputs
