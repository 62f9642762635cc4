"""Yes/no questions in the learner: exact prices, what is learned, and a stop in the middle."""

from fractions import Fraction

import numpy as np
import pytest

from attakit.service.learner.allowance import PurposeCounts, label_rate, share_out
from attakit.service.learner.people import to_answer
from attakit.service.storage.rows import Question
from attakit.service.web.overview import labels_body
from attakit.settings.service import ServiceLabelsTable
from miniature_service import METHOD
from states import same_state

PRICE = 0.1
LABELS = {"budget": 4, "audit_share": 0.3, "question": "yes_no", "yes_no_price": PRICE}
METHODS = {"simatta": METHOD, "anchor_head": {"name": "anchor_head"}}
PACE = {"simatta": {}, "anchor_head": {"per_1000": 600, "first": 10}}


def settings(method, **labels):
    return {"method": METHODS[method], "labels": {**LABELS, **PACE[method], **labels}}


def answer_all(service, limit=100):
    """Let somebody answer: a class to the audit; yes, no, a class, none or skip to the rest."""
    ways = [("yes", None), ("no", None), ("no", None), ("label", 2), ("skip", None), ("none", None)]
    for _ in range(limit):
        lease = service.storage.questions.lease("ada")
        if lease is None:
            break
        number = lease.question.question
        kind, label = ("label", number % 3) if lease.question.proposed is None else ways[number % 6]
        service.storage.questions.answer(number, "ada", kind, label, f"{number}")
    service.now += service.settings.labels.settle_seconds + 1


def play(service, rounds, limit=100):
    for number in rounds:
        service.serve_batch(number)
        while service.learner.run_once():
            pass
        answer_all(service, limit)
    while service.learner.run_once():
        pass


def spent(service):
    """What the questions in the database cost, in labels."""
    counts = service.storage.questions.counts()
    return counts.paid - counts.yes_no + Fraction(1, 10) * counts.yes_no


@pytest.mark.parametrize("method", METHODS)
def test_the_budget_is_exact_and_never_exceeded(miniature, method):
    service = miniature(**settings(method))
    service.start()
    for number in range(7):
        play(service, [number])
        account = service.learner.memory.ledger.budget
        assert Fraction(str(account.spent)) == spent(service) <= LABELS["budget"]
        shown = labels_body(service.storage.questions.counts(), service.settings.labels)
        assert shown.left == account.remaining
    counts = service.storage.questions.counts()

    assert counts.yes_no > LABELS["budget"]  # more answers than a budget of classes would buy
    assert min(counts.no, counts.none, counts.skipped) > 0
    audit = [one for one in service.storage.questions.recent(1000) if one.purpose == "audit"]
    assert audit
    assert all(one.proposed is None for one in audit)


def test_the_budget_is_spent_to_the_last_tenth(miniature):
    service = miniature(**settings("simatta", budget=2, audit_share=0.0, per_1000=500))
    service.start()
    for number in range(8):
        service.serve_batch(number)
        service.learner.run_once()
        while lease := service.storage.questions.lease("ada"):
            service.storage.questions.answer(
                lease.question.question, "ada", "no", None, str(lease.question.question)
            )
        service.now += 6

    assert (service.storage.questions.counts().yes_no, spent(service)) == (20, 2)
    assert service.learner.memory.left == 0


@pytest.mark.parametrize("method", METHODS)
def test_a_learner_that_is_stopped_in_the_middle_comes_back_to_the_same_state(miniature, method):
    made = []
    for name in ("unbroken", "stopped"):
        service = miniature(name, **settings(method), seed=3)
        service.start()
        for number in range(4):
            if name == "stopped":
                service.start()  # from its checkpoint and the log
            play(service, [number], limit=3)
        made.append(service)
    first, second = (service.learner.memory.state_dict() for service in made)

    assert first["ledger"] == second["ledger"]
    assert first["counts"] == second["counts"]
    models = [service.learner.memory.method.adapted_model.state_dict() for service in made]
    assert same_state(*map(dict, models))
    assert [one.proposed for one in made[0].storage.questions.recent(100)] == [
        one.proposed for one in made[1].storage.questions.recent(100)
    ]


def test_a_replay_asks_what_it_asked_before_though_the_setting_was_changed(miniature):
    service = miniature(**settings("simatta"), learning={"batch_size": 10, "checkpoint_every": 99})
    service.start()
    play(service, range(3), limit=4)
    counts, cost = service.storage.questions.counts(), spent(service)

    service.settings = service.settings.model_copy(
        update={"labels": service.settings.labels.model_copy(update={"question": "class"})}
    )
    service.start()

    assert service.storage.questions.counts() == counts
    assert Fraction(str(service.learner.memory.ledger.budget.spent)) == cost
    play(service, range(3, 5))
    assert any(
        one.proposed is None and one.purpose == "learn"
        for one in service.storage.questions.recent(5)
    )


def test_a_forgotten_question_stays_paid_at_its_price(miniature):
    service = miniature(**settings("simatta"), learning={"batch_size": 10, "checkpoint_every": 99})
    service.start()
    play(service, range(2), limit=4)
    answered = [one for one in service.storage.questions.recent(50) if one.state == "no"]
    service.storage.samples.forget(answered[0].sample, "root")
    while service.learner.run_once():
        pass
    cost = spent(service)
    service.start()

    assert Fraction(str(service.learner.memory.ledger.budget.spent)) == cost


def question(state, label=None, proposed=None, **more):
    return Question(1, "a", 0, "learn", 0, 0.5, (), 0.0, state, label, proposed=proposed, **more)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (question("answered", 1, proposed=1), "yes"),
        (question("answered", 0, proposed=1), "label"),
        (question("no", proposed=1), "no"),
        (question("none"), "excluded"),
        (question("none", refunded=True), "skipped"),
        (question("skipped", proposed=1), "skipped"),
    ],
)
def test_an_outcome_becomes_what_the_method_can_use(asked, kind):
    assert to_answer(asked, classes=3).kind == kind


def test_none_of_these_excludes_all_classes_and_is_paid_for():
    said = to_answer(question("none"), classes=3)

    assert said.excluded == (0, 1, 2)
    assert said.says_something
    assert not said.teaches(3)


def test_cheap_questions_are_shared_out_within_what_is_left():
    random, price = np.random.default_rng(0), Fraction(1, 4)

    found = share_out(0.2, Fraction(9, 4), 50, PurposeCounts(2.0, 1), random, price=price)
    assert found == PurposeCounts(learn=8, audit=0)  # of the nine that would be possible
    assert share_out(0, Fraction(1, 5), 50, PurposeCounts(), random, price=price).learn == 0


def test_a_budget_that_is_spread_pays_for_more_cheap_questions():
    table = ServiceLabelsTable(budget=100, spread_over=1000, audit_share=0.2)

    assert label_rate(table, Fraction(1, 4)).per_1000 == 320
