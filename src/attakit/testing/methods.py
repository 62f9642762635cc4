"""`check_method`: the contract of every method, including your own."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import torch
from torch import nn

from attakit.errors import ModelError
from attakit.protocols import Asks, Method, ShowsModel
from attakit.queries import Allowance, Answer, Query
from attakit.records import Batch, Step
from attakit.testing.states import same_state, saved_and_loaded
from attakit.testing.tiny import CLASSES, global_randomness, tiny_batch, tiny_classifier
from attakit.testing.yes_no import check_resume_between_yes_no_answers, check_yes_no_questions

Factory = Callable[[nn.Module], Method]

ALLOWANCES = (
    Allowance(0),
    Allowance(1),
    Allowance(3),
    Allowance(0),
    Allowance(2, pace=3.0, samples_left=40),
)


def check_method(factory: Factory) -> None:
    """Raise AssertionError, with a sentence, if a method breaks the contract.

    Parameters
    ----------
    factory
        Builds the method from a model, for example the class itself or
        ``lambda model: MyMethod(model, lr=0.1)``.

    Examples
    --------
    >>> from attakit.methods import Tent
    >>> check_method(Tent)
    """
    for check in CHECKS:
        check(factory)


def check_prediction_repeats(factory: Factory) -> None:
    method = _warmed_up(factory)
    before = copy.deepcopy(method.state_dict())
    inputs = tiny_batch(9).inputs
    first, second = method.predict(inputs), method.predict(inputs)
    assert torch.equal(first.logits, second.logits), "predict gave two answers to one question"
    assert same_state(before, method.state_dict()), "predict changed the method's state"


def check_answers_come_before_adaptation(factory: Factory) -> None:
    method = _warmed_up(factory)
    batch = tiny_batch(9)
    expected = method.predict(batch.inputs).logits
    given = method.step(batch, Allowance(2)).prediction.logits
    assert given.shape == (len(batch), CLASSES), f"step gave logits of shape {tuple(given.shape)}"
    assert bool(given.isfinite().all()), "step gave logits that are not finite"
    assert not given.requires_grad, "step gave logits with the model's graph"
    assert torch.allclose(given, expected, atol=1e-5), "step answered from a changed model"


def check_caller_keeps_model_and_inputs(factory: Factory) -> None:
    model, batch = tiny_classifier(), tiny_batch()
    weights, inputs = copy.deepcopy(model.state_dict()), batch.inputs.clone()
    training, hooks = model.training, _hook_count(model)
    grads = [parameter.requires_grad for parameter in model.parameters()]
    method = factory(model)
    _turn(method, batch)
    assert same_state(weights, model.state_dict()), "the caller's model was changed"
    assert model.training == training, "the caller's model was switched between train and eval"
    after = [parameter.requires_grad for parameter in model.parameters()]
    assert after == grads, "parameters of the caller's model were frozen or thawed"
    assert _hook_count(model) == hooks, "hooks were left on the caller's model"
    assert torch.equal(inputs, batch.inputs), "the caller's inputs were changed"


def check_frozen_parameters_stay(factory: Factory) -> None:
    method = factory(tiny_classifier())
    if not isinstance(method, ShowsModel):
        return
    model = method.adapted_model
    frozen = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if not parameter.requires_grad
    }
    _turns(method)
    after = dict(model.named_parameters())
    for name, before in frozen.items():
        assert torch.equal(after[name], before), f"{name} changed, but requires no gradient"


def check_questions_stay_within_allowance(factory: Factory) -> None:
    method = factory(tiny_classifier())
    asked: list[Query] = []
    for number, allowance in enumerate(ALLOWANCES):
        step = method.step(tiny_batch(number), allowance)
        count = len(step.queries)
        assert count <= allowance.count, f"{count} questions for {allowance.count}"
        names = set(tiny_batch(number).samples)
        assert {query.sample for query in step.queries} <= names, "asked about a foreign sample"
        assert {query.step for query in step.queries} <= {number}, (
            "asked with the number of another step"
        )
        asked += step.queries
        method.learn(answers_to(step.queries))
    assert len({query.sample for query in asked}) == len(asked), "a sample was asked twice"


def check_questions_stay_within_classes(factory: Factory) -> None:
    method, batch = factory(tiny_classifier()), tiny_batch()
    step = method.step(batch, Allowance(len(batch), per_class={0: 1, 1: 2}))
    classes = step.prediction.logits.argmax(dim=1).tolist()
    predicted = dict(zip(batch.samples, classes, strict=True))
    for kind, count in Counter(predicted[query.sample] for query in step.queries).items():
        allowed = {0: 1, 1: 2}.get(kind, 0)
        assert count <= allowed, f"{count} questions about class {kind}, {allowed} were allowed"


def check_asking_is_declared(factory: Factory) -> None:
    method = factory(tiny_classifier())
    asked = sum(len(step.queries) for step in _turns(method))
    assert not asked or isinstance(method, Asks), "it asks for labels, but does not inherit Asks"


def check_learning_takes_any_answers(factory: Factory) -> None:
    method = factory(tiny_classifier())
    steps = [method.step(tiny_batch(number), Allowance(3)) for number in range(3)]
    queries = [query for step in steps for query in step.queries]
    late = answers_to(queries)[::-1]
    method.learn([])
    method.learn(late[:2])
    method.learn(late[:2])
    method.learn([Answer(query, None, "skipped") for query in queries[:1]])
    method.learn(late[2:])


def check_learning_takes_what_is_no_label(factory: Factory) -> None:
    """Check that a method accepts answers that are no labels. It may ignore them."""
    method = factory(tiny_classifier())
    steps = [method.step(tiny_batch(number), Allowance(3)) for number in range(3)]
    queries = [query for step in steps for query in step.queries]
    others = [
        {"excluded": (1,)},
        {"among": (0, 2)},
        {"chances": (0.2, 0.0, 0.6)},
        {"excluded": tuple(range(CLASSES))},
    ]
    said = [
        Answer(query, None, "check", **others[number % len(others)])  # type: ignore[arg-type]
        for number, query in enumerate(queries)
    ]
    method.learn([*said[1:], *(replace(answer, weight=0.5) for answer in said[:1])])
    logits = method.predict(tiny_batch(9).inputs).logits
    assert bool(logits.isfinite().all()), "answers that are not labels gave infinite logits"


def check_resumed_run_equals_unbroken(factory: Factory) -> None:
    unbroken, broken = factory(tiny_classifier()), factory(tiny_classifier())
    batches = [tiny_batch(number) for number in range(4)]
    for batch in batches[:2]:
        _turn(unbroken, batch)
        _turn(broken, batch)
    resumed = factory(tiny_classifier())
    resumed.load_state_dict(saved_and_loaded(broken.state_dict()))
    for batch in batches[2:]:
        one, other = _turn(unbroken, batch), _turn(resumed, batch)
        assert torch.equal(one.prediction.logits, other.prediction.logits), "resumed run differs"
        assert one.queries == other.queries, "resumed run asks other questions"
    assert same_state(unbroken.state_dict(), resumed.state_dict()), "resumed state differs"


def check_global_randomness_is_left_alone(factory: Factory) -> None:
    before = global_randomness()
    first = _turns(factory(tiny_classifier()))
    for library, state in global_randomness().items():
        assert state == before[library], f"{library}'s global randomness was used"
    second = _turns(factory(tiny_classifier()))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one.prediction.logits, other.prediction.logits), "two runs differ"
        assert one.queries == other.queries, "two runs ask different questions"


def check_odd_batches(factory: Factory) -> None:
    method = factory(tiny_classifier())
    for number, size in enumerate((0, 1, 2, 0, 1)):
        batch = tiny_batch(number, size=size)
        try:
            step = _turn(method, batch)
        except ModelError:
            continue
        assert step.prediction.logits.shape == (size, CLASSES), f"wrong answer to {size} samples"
    sure = Batch(9, tiny_batch(9).samples, tiny_batch(9).inputs * 100)
    _turn(method, sure)


def check_settings_are_documented(factory: Factory) -> None:
    kind = type(factory(tiny_classifier()))
    text = f"{inspect.getdoc(kind)} {inspect.getdoc(kind.__init__)}"
    for name, parameter in inspect.signature(kind).parameters.items():
        assert name in text, f"the setting {name} is not documented"
        if name != "model":
            assert parameter.kind is parameter.KEYWORD_ONLY, f"{name} must be keyword-only"
            assert parameter.default is not parameter.empty, f"{name} has no default"


def check_nothing_is_printed(factory: Factory) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        _turns(factory(tiny_classifier()))
    assert output.getvalue() == "", f"the method printed {output.getvalue()!r}"


CHECKS: tuple[Callable[[Factory], None], ...] = (
    check_prediction_repeats,
    check_answers_come_before_adaptation,
    check_caller_keeps_model_and_inputs,
    check_frozen_parameters_stay,
    check_questions_stay_within_allowance,
    check_questions_stay_within_classes,
    check_asking_is_declared,
    check_learning_takes_any_answers,
    check_learning_takes_what_is_no_label,
    check_yes_no_questions,
    check_resume_between_yes_no_answers,
    check_resumed_run_equals_unbroken,
    check_global_randomness_is_left_alone,
    check_odd_batches,
    check_settings_are_documented,
    check_nothing_is_printed,
)


def answers_to(queries: Iterable[Query]) -> list[Answer]:
    """Return a fixed label for every query."""
    return [Answer(query, sum(query.sample.encode()) % CLASSES, "check") for query in queries]


def _turn(method: Method, batch: Batch) -> Step:
    step = method.step(batch, Allowance(2))
    method.learn(answers_to(step.queries))
    return step


def _turns(method: Method) -> list[Step]:
    return [_turn(method, tiny_batch(number)) for number in range(3)]


def _warmed_up(factory: Factory) -> Method:
    method = factory(tiny_classifier())
    _turns(method)
    return method


def _hook_count(model: nn.Module) -> int:
    return sum(
        len(layer._forward_hooks) + len(layer._forward_pre_hooks) for layer in model.modules()
    )
