"""Adapting in a plain for loop."""

import copy

import pytest
import torch

from attakit.engine import adapt, run
from attakit.errors import LabelError, SettingError, StreamError
from attakit.label import Budget, Callback, Ledger
from attakit.methods import SimATTA, SourceOnly
from attakit.select import IncrementalClustering
from attakit.stream import from_iterable
from attakit.testing import tiny_batch, tiny_classifier
from attakit.testing.methods import same_state
from attakit.train.balanced import BalancedTrainer


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


def in_parts(count, named=True):
    """Labels asked for in each of several calls with the same method and 24 batches in all."""
    method = SimATTA(
        tiny_classifier(),
        low_entropy_bound=0.1,
        high_entropy_bound=0.0,
        selector=IncrementalClustering(cluster_growth=1, inits=1),
        trainer=BalancedTrainer(max_updates=1),
    )
    batches = [tiny_batch(step, size=12) for step in range(24)]
    elements = [(list(batch.samples), batch.inputs) if named else batch.inputs for batch in batches]
    size, spent = 24 // count, []
    for first in range(0, 24, size):
        budget = Budget(None)
        exhaust(adapt(method, elements[first : first + size], lambda *_: 0, budget=budget))
        spent.append(budget.spent)
    return spent, method


def test_several_calls_ask_for_as_many_labels_as_one():
    (whole,), one = in_parts(1)
    parts, several = in_parts(3)

    assert sum(parts) == whole
    assert min(parts) > 4, "later calls must not stop asking"
    assert same_state(one.state_dict(), several.state_dict()), "nor repeat their random draws"


def test_samples_without_names_are_other_samples_in_a_later_call():
    method = asking_method()
    seen = [
        batch.samples[0]
        for _ in range(2)
        for batch, _ in adapt(method, tiny_inputs(2), lambda *_: 0, budget=4)
    ]

    assert seen == ["sample-0", "sample-8", "sample-2-0", "sample-2-8"]


def test_a_loaded_method_continues_its_steps():
    first, second = asking_method(), asking_method()
    exhaust(adapt(first, tiny_inputs(3), lambda *_: 0, budget=4))

    second.load_state_dict(first.state_dict())

    assert (asking_method().next_step, first.next_step, second.next_step) == (0, 3, 3)


def test_predictions_are_confirmed_or_not_at_their_price():
    budget = Budget(3, yes_no_price=0.25)
    shown = []
    method = asking_method()
    method.question = "yes_no"

    def confirm(name, row, proposed):
        shown.append((name, row.shape, proposed))
        return False

    turns = adapt(
        method, tiny_inputs(), refuse, budget=budget, classes=["a", "b", "c"], confirm=confirm
    )
    given = [prediction.logits for _, prediction in turns]

    assert len(shown) == 4 * budget.spent > 3
    assert {proposed for _, _, proposed in shown} <= {"a", "b", "c"}
    assert method.high_entropy_anchors.rows.targets.open.all()
    assert all(bool(logits.isfinite().all()) for logits in given)


def refuse(name, row):
    raise AssertionError(f"{name} was asked about with its class")


def test_who_returns_the_class_answers_yes_or_no_where_that_is_asked():
    method = asking_method()
    method.question = "yes_no"
    budget = Budget(10)

    exhaust(adapt(method, tiny_inputs(), lambda name, _: 0, budget=budget))

    rows = method.high_entropy_anchors.rows
    assert set(rows.labels.tolist()) <= {0, -1}
    assert len(rows) == budget.spent


def test_several_classes_and_chances_are_learned_from():
    said = iter([{0, 1}, [0.1, 0.1, 0.8], 2] * 10)
    method = asking_method()

    exhaust(adapt(method, tiny_inputs(), lambda name, _: next(said), budget=6))

    targets = method.high_entropy_anchors.rows.targets
    assert targets.shares[:3].sum(dim=1).tolist() == pytest.approx([2.0, 1.0, 1.0])
    assert targets.open[:3].tolist() == [True, False, False]
