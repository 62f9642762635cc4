import torch

from attakit.label.budget import Budget
from attakit.label.ledger import Ledger
from attakit.methods import Enhanced, SimATTA, SourceOnly, Tent
from attakit.protocols import Forgets
from attakit.queries import Allowance, Answer, Query
from attakit.records import LabelledRows
from attakit.store.anchors import Anchors
from attakit.store.waiting import Waiting
from attakit.testing import tiny_batch, tiny_classifier


def rows(*names):
    numbers = torch.arange(float(len(names))).reshape(-1, 1)
    return LabelledRows(names, numbers, numbers[:, 0].long(), numbers, numbers, numbers[:, 0])


def test_forgotten_anchors_are_gone():
    anchors = Anchors()
    anchors.add(rows("a", "b", "a", "c"))

    anchors.forget(["a", "unknown"])

    assert anchors.rows.samples == ("b", "c")
    assert anchors.rows.inputs.flatten().tolist() == [1, 3]


def test_nothing_is_forgotten_where_nothing_is_kept():
    for store in (Anchors(), Waiting()):
        store.forget(["a"])
        assert len(store) == 0


def test_a_forgotten_question_is_not_resolved():
    waiting = Waiting()
    first, second = waiting.hold(rows("a", "b"), step=0)

    waiting.forget(["a"])

    resolved = waiting.resolve([Answer(first, 1, "me"), Answer(second, 2, "me")])
    assert resolved is not None
    assert resolved.samples == ("b",)


def test_a_ledger_forgets_the_label_but_not_that_it_was_paid_for():
    ledger = Ledger(Budget(3))
    query = Query("a", 0)
    ledger.ask([query])
    ledger.settle([Answer(query, 1, "me")])

    ledger.forget(["a"])

    assert ledger.state_dict()["settled"] == [["a", 0, -1]]
    assert (ledger.received, ledger.budget.spent) == (1, 1)
    assert ledger.settle([Answer(query, 2, "me")]) == ()
    assert ledger.conflicting == 0


def holds(value, sample):
    if isinstance(value, dict):
        return any(holds(each, sample) for each in value.values())
    if isinstance(value, (list, tuple)):
        return any(holds(each, sample) for each in value)
    return value == sample if isinstance(value, str) else False


def taught(method):
    for number in range(2):
        step = method.step(tiny_batch(number), Allowance(4))
        method.learn([Answer(query, 1, "me") for query in step.queries[:2]])
    return method


def test_methods_that_keep_samples_forget_them_everywhere():
    model = tiny_classifier()
    inner = SimATTA(model, high_entropy_bound=0.0)
    for method in (
        SimATTA(model, high_entropy_bound=0.0),
        Enhanced(model, method=Tent(model), keep=True),
        Enhanced(model, method=inner, keep=True),
    ):
        samples = tiny_batch(0).samples + tiny_batch(1).samples
        state = taught(method).state_dict()
        kept = [name for name in samples if holds(state, name)]
        assert kept

        assert isinstance(method, Forgets)
        method.forget(kept)

        assert not any(holds(method.state_dict(), name) for name in samples)
        method.step(tiny_batch(3), Allowance(1))
        method.learn(())


def test_a_method_that_keeps_nothing_need_not_forget():
    assert not isinstance(SourceOnly(tiny_classifier()), Forgets)
