"""Checks of yes/no questions: what they propose, and runs that are resumed between answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import nn

from attakit.methods.asking import AskingMethod
from attakit.protocols import Method
from attakit.queries import Allowance, Answer, Query
from attakit.testing.states import same_state, saved_and_loaded
from attakit.testing.tiny import CLASSES, tiny_batch, tiny_classifier

Factory = Callable[[nn.Module], Method]


def check_yes_no_questions(factory: Factory) -> None:
    """Check yes/no questions: a method proposes what it predicts, and can be resumed."""
    found = _asking_yes_no(factory, 2)
    if not found:
        return
    method, resumed = found
    batch = tiny_batch()
    step = method.step(batch, Allowance(0, yes_no=4))
    predicted = step.prediction.logits.argmax(dim=1).tolist()
    wanted = [predicted[batch.samples.index(query.sample)] for query in step.queries]
    proposed = [query.proposed for query in step.queries]
    assert len(proposed) <= 4, f"{len(proposed)} yes/no questions were asked, 4 were allowed"
    assert proposed == wanted, f"classes {proposed} were proposed where {wanted} were predicted"
    method.learn([])  # answers come later
    resumed.load_state_dict(saved_and_loaded(method.state_dict()))
    same = same_state(method.waiting.state_dict(), resumed.waiting.state_dict())
    assert same, "open yes/no questions were lost when the run was resumed"
    for one in (method, resumed):
        one.learn(_judged(step.queries))
        assert len(one.waiting) == 0, "answers to yes/no questions did not settle them"
    same = same_state(method.state_dict(), resumed.state_dict())
    assert same, "after answers that came later, the resumed run has another state"


def check_resume_between_yes_no_answers(factory: Factory) -> None:
    """Check that a run which stops after some answers to a batch continues as if it had not."""
    found = _asking_yes_no(factory, 3)
    if not found:
        return
    unbroken, broken, resumed = found
    open_queries: tuple[Query, ...] = ()
    for method in (unbroken, broken):
        queries = method.step(tiny_batch(), Allowance(0, yes_no=4)).queries
        method.learn(_judged(queries[:2]))
        open_queries = queries[2:]
    resumed.load_state_dict(saved_and_loaded(broken.state_dict()))
    for method in (unbroken, resumed):
        method.learn(_judged(open_queries))
    for number in (1, 2):
        batch, allowance = tiny_batch(number), Allowance(0, yes_no=2)
        one, other = unbroken.step(batch, allowance), resumed.step(batch, allowance)
        same = torch.equal(one.prediction.logits, other.prediction.logits)
        assert same, "a run that was resumed between yes/no answers predicts something else"
        assert one.queries == other.queries, "it asks other yes/no questions"
        unbroken.learn(_judged(one.queries))
        resumed.learn(_judged(other.queries))
    same = same_state(unbroken.state_dict(), resumed.state_dict())
    assert same, "the state differs after a run was resumed between yes/no answers"


def _asking_yes_no(factory: Factory, count: int) -> list[AskingMethod]:
    """Return equal methods that ask yes/no questions; none if the method cannot ask them."""
    found = [factory(tiny_classifier()) for _ in range(count)]
    asking = [method for method in found if isinstance(method, AskingMethod)]
    for method in asking:
        method.question = "yes_no"
    return asking


def _judged(queries: Iterable[Query]) -> list[Answer]:
    """Answer every query with yes or no, by a class that is fixed for its sample."""
    return [
        Answer.knowing(query, sum(query.sample.encode()) % CLASSES, "check") for query in queries
    ]
