import random

import numpy as np
import pytest
import torch

from attakit.errors import ModelError
from attakit.methods import BaseMethod, SimATTA, Tent
from attakit.queries import Query, SampleId
from attakit.records import Prediction, Step, Training
from attakit.testing import check_method
from attakit.testing.methods import same_state


def broken(**parts):
    """A method that does nothing, but for the parts given."""
    return type("Broken", (BaseMethod,), {"__doc__": "Holds a model.", **parts})


class Peeking(BaseMethod):
    """Moves the model whenever it is asked."""

    def predict(self, inputs):
        answer = super().predict(inputs)
        with torch.no_grad():
            next(self.model.parameters()).mul_(0.9)
        return answer


class ProgressCallback(BaseMethod):
    """Remembers how often it was asked."""

    stateful = ("model", "count")
    count = 0

    def predict(self, inputs):
        self.count += 1
        return super().predict(inputs)


class Late(Tent):
    """Answers after it has adapted."""

    def step(self, batch, allowance):
        super().step(batch, allowance)
        return Step(self.predict(batch.inputs))


class Borrowing(BaseMethod):
    """Uses the model without copying it."""

    def __init__(self, model):
        super().__init__(model)
        self.borrowed = model

    def learn(self, answers):
        with torch.no_grad():
            next(self.borrowed.parameters()).add_(1)
        return Training()


class Creeping(BaseMethod):
    """Moves parameters that it has declared frozen."""

    def learn(self, answers):
        with torch.no_grad():
            next(self.model.parameters()).add_(1e-3)
        return Training()


class Freezing(BaseMethod):
    """Freezes the caller's model."""

    def __init__(self, model):
        super().__init__(model)
        model.requires_grad_(False)


class Switching(BaseMethod):
    """Puts the caller's model into evaluation mode."""

    def __init__(self, model):
        super().__init__(model)
        model.eval()


class Hooking(BaseMethod):
    """Leaves a hook on the caller's model."""

    def __init__(self, model):
        super().__init__(model)
        model[0].register_forward_hook(lambda *_: None)


class Forgetful(BaseMethod):
    """Counts steps, answers by the count, and does not save it."""

    count = 0

    def step(self, batch, allowance):
        answer = self.predict(batch.inputs)
        self.count += 1
        return Step(answer)

    def predict(self, inputs):
        plain = super().predict(inputs)
        return Prediction(plain.logits + self.count, plain.features)


class Unsavable(BaseMethod):
    """Keeps an object in its state."""

    stateful = ("model", "thing")

    def __init__(self, model):
        super().__init__(model)
        self.thing = np.random.RandomState


class Undocumented(BaseMethod):
    """Holds a model."""

    def __init__(self, model, *, lr=0.1):
        super().__init__(model)


class Positional(BaseMethod):
    """Holds a model and lr."""

    def __init__(self, model, lr=0.1):
        super().__init__(model)


class Demanding(BaseMethod):
    """Holds a model and lr."""

    def __init__(self, model, *, lr):
        super().__init__(model)


def asks(choose):
    """A method that asks what `choose` says of (batch, allowance)."""

    def step(self, batch, allowance):
        return Step(self.predict(batch.inputs), tuple(choose(batch, allowance)))

    return broken(step=step)


def ask_all(batch, allowance):
    return [Query(sample, batch.step) for sample in batch.samples]


def ask_foreign(batch, allowance):
    return [Query(SampleId("elsewhere"), batch.step)][: allowance.count]


def ask_twice(batch, allowance):
    return [Query(batch.samples[0], batch.step)] * min(2, allowance.count)


def ask_of_any_class(batch, allowance):
    return [Query(sample, batch.step) for sample in batch.samples[: allowance.count]]


def ask_nothing_beyond_classes(batch, allowance):
    return [] if allowance.per_class else ask_of_any_class(batch, allowance)


def ask_with_another_step(batch, allowance):
    return [Query(sample, 77) for sample in batch.samples[: allowance.count]]


def spoil_inputs(self, batch, allowance):
    step = Step(self.predict(batch.inputs.clone()))
    batch.inputs.zero_()
    return step


def draw_from_torch(self, answers):
    torch.rand(1)
    return Training()


def draw_from_numpy(self, answers):
    np.random.rand()
    return Training()


def draw_from_python(self, answers):
    random.random()
    return Training()


def speak(self, answers):
    print("learning")  # noqa: T201
    return Training()


def give_nothing_finite(self, model, inputs):
    return Prediction(torch.full((len(inputs), 3), torch.inf), torch.zeros(len(inputs), 2))


def keep_the_graph(self, batch, allowance):
    self.model.requires_grad_(True)
    return Step(self.model(batch.inputs))


def answer_one_short(self, batch, allowance):
    whole = self.predict(batch.inputs)
    short = slice(None, -1) if len(batch) == 1 else slice(None)
    return Step(Prediction(whole.logits[short], whole.features[short]))


BROKEN = {
    "two answers to one question": Peeking,
    "predict changed the method's state": ProgressCallback,
    "step answered from a changed model": Late,
    "caller's model was changed": Borrowing,
    "changed, but requires no gradient": Creeping,
    "frozen or thawed": Freezing,
    "switched between train and eval": Switching,
    "hooks were left": Hooking,
    "inputs were changed": broken(step=spoil_inputs),
    "questions for 0": asks(ask_all),
    "foreign sample": asks(ask_foreign),
    "asked twice": asks(ask_twice),
    "another step": asks(ask_with_another_step),
    "questions about class": asks(ask_of_any_class),
    "does not inherit Asks": asks(ask_nothing_beyond_classes),
    "resumed run differs": Forgetful,
    "state_dict holds more than": Unsavable,
    "torch's global randomness": broken(learn=draw_from_torch),
    "numpy's global randomness": broken(learn=draw_from_numpy),
    "Python's global randomness": broken(learn=draw_from_python),
    "the method printed 'learning": broken(learn=speak),
    "not finite": broken(answer=give_nothing_finite),
    "with the model's graph": broken(step=keep_the_graph),
    "wrong answer to 1 samples": broken(step=answer_one_short),
    "lr is not documented": Undocumented,
    "lr must be keyword-only": Positional,
    "lr has no default": lambda model: Demanding(model, lr=1),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_broken_method_is_told_what_is_wrong(message):
    with pytest.raises(AssertionError, match=message):
        check_method(BROKEN[message])


def test_a_method_that_cannot_learn_late_answers_is_caught():
    class Impatient(SimATTA):
        def learn(self, answers):
            if not answers:
                raise KeyError("no answers")
            return super().learn(answers)

    with pytest.raises(KeyError, match="no answers"):
        check_method(lambda model: Impatient(model, high_entropy_bound=0.0))


def test_a_method_that_cannot_take_an_empty_batch_is_caught():
    def fail(self, batch, allowance):
        return Step(Prediction(self.model(batch.inputs[:1].expand(8, -1)).logits, batch.inputs))

    with pytest.raises(Exception, match=r".+"):
        check_method(broken(step=fail))


def test_a_method_may_refuse_a_batch_that_is_too_small():
    def step(self, batch, allowance):
        if len(batch) == 1:
            raise ModelError("I need two samples.")
        return Step(self.predict(batch.inputs))

    check_method(broken(step=step))


def test_a_method_that_does_nothing_passes():
    check_method(broken())


def test_states_are_compared_to_the_last_bit():
    state = {"a": [torch.zeros(2), 1], "b": (np.zeros(2), None)}
    same = {"a": [torch.zeros(2), 1], "b": (np.zeros(2), None)}
    assert same_state(state, same)
    assert not same_state(state, {**same, "a": [torch.tensor([0.0, 1e-30]), 1]})
    assert not same_state(state, {**same, "c": 1})
    assert not same_state(state, {**same, "b": (np.ones(2), None)})
    assert not same_state(state, {**same, "a": [torch.zeros(2)]})
    assert not same_state({"a": {}}, {"a": 1})
