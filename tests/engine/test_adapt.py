"""Adapting in a plain for loop."""

import copy

import pytest
import torch

from attakit.engine import adapt, run
from attakit.errors import LabelError, SettingError, StreamError
from attakit.label import Budget, Callback, Ledger
from attakit.methods import SimATTA, SourceOnly
from attakit.stream import from_iterable
from attakit.testing import tiny_batch, tiny_classifier


def tiny_inputs(count=4):
    return [tiny_batch(step).inputs for step in range(count)]


def asking_method():
    return SimATTA(tiny_classifier(), low_entropy_bound=0.1, high_entropy_bound=0.0)


def exhaust(turns):
    return [prediction.logits for _, prediction in turns]


def test_predictions_come_before_anybody_is_asked():
    asked = []
    turns = adapt(
        asking_method(), tiny_inputs(2), lambda name, _: asked.append(name) or 0, budget=5
    )

    next(turns)

    assert asked == []
    next(turns)
    assert asked != []


def test_the_function_gets_the_input_that_belongs_to_the_name():
    batches = tiny_inputs()
    every_input = torch.cat(batches)
    seen = {}

    exhaust(adapt(asking_method(), batches, lambda *pair: seen.update([pair]) or 0, budget=20))

    assert len(seen) > 8, "more than the first batch should be asked about"
    for name, row in seen.items():
        assert torch.equal(row, every_input[int(name.removeprefix("sample-"))])


def test_it_does_what_run_does():
    batches = tiny_inputs()
    one, other = asking_method(), asking_method()
    oracle = Callback(lambda name: int(name.removeprefix("sample-")) % 3)

    exhaust(adapt(one, batches, lambda name, _: int(name[7:]) % 3, budget=12))
    samples = sum(len(batch) for batch in batches)
    run(from_iterable(batches), other, oracle, Ledger(Budget(12)), samples=samples)

    first, second = one.adapted_model.state_dict(), other.adapted_model.state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_last_batch_is_learned_from_too():
    method = asking_method()
    before = copy.deepcopy(method.adapted_model.state_dict())

    exhaust(adapt(method, tiny_inputs(1), lambda name, _: 0, budget=3))

    after = method.adapted_model.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("norm", ["frozen", "blended"])
def test_the_adapted_weights_fit_the_original_model(norm):
    model = tiny_classifier()
    method = SimATTA(model, low_entropy_bound=0.1, high_entropy_bound=0.0, norm=norm)
    exhaust(adapt(method, tiny_inputs(), lambda name, _: 0, budget=10))

    model.load_state_dict(method.adapted_model.state_dict())

    inputs = tiny_batch(9).inputs
    assert torch.equal(model.eval()(inputs), method.adapted_model(inputs))
    if norm == "frozen":  # blended statistics look at the batch; the adapted model does not
        assert torch.equal(model(inputs), method.predict(inputs).logits)


def test_a_budget_of_ones_own_tells_what_was_spent():
    budget = Budget(7)

    exhaust(adapt(asking_method(), tiny_inputs(), lambda name, _: 1, budget=budget))

    assert budget.spent == 7


def test_skipped_questions_cost_nothing():
    budget = Budget(7)

    exhaust(adapt(asking_method(), tiny_inputs(), lambda name, _: None, budget=budget))

    assert budget.spent == 0


def test_class_names_are_answers_too():
    method, budget = asking_method(), Budget(3)

    exhaust(
        adapt(method, tiny_inputs(), lambda *_: "dog", budget=budget, classes=["cat", "dog", "cow"])
    )

    assert method.high_entropy_anchors.rows.labels.tolist() == [1, 1, 1]


def test_methods_that_never_ask_need_no_budget():
    logits = exhaust(adapt(SourceOnly(tiny_classifier()), tiny_inputs(), lambda *_: 0, budget=0))

    assert [rows.shape for rows in logits] == [(8, 3)] * 4


def test_a_class_that_the_model_does_not_have_is_refused():
    with pytest.raises(LabelError, match=r"is of class 3, but the model has 3 classes, 0 to 2"):
        exhaust(adapt(asking_method(), tiny_inputs(), lambda *_: 3, budget=5))


def test_a_dictionary_is_no_function():
    with pytest.raises(SettingError, match=r"ask must be a function .* lambda name, _"):
        adapt(asking_method(), tiny_inputs(), {"sample-0": 1}, budget=5)


def test_one_tensor_is_no_iterable_of_batches():
    with pytest.raises(StreamError, match="instead of an iterable of batches"):
        adapt(asking_method(), torch.zeros(8, 4), lambda *_: 0, budget=5)
