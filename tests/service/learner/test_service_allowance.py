"""Budgets: total, per hour, per class, and the share of the audit."""

import math
from collections import Counter

import numpy as np
import pytest

from attakit.service.learner.allowance import (
    EARLY_AUDIT,
    PlannedBudget,
    PurposeCounts,
    hourly_limit,
    label_rate,
    question_limit,
    share_out,
)
from attakit.settings.service import ServiceLabelsTable
from miniature_service import METHOD


def generator(seed=0):
    return np.random.default_rng(seed)


def test_the_audit_gets_its_share_on_average():
    asked = PurposeCounts(learn=5, audit=0)
    drawn = [share_out(0.2, 100, 50, asked, generator(seed)).audit for seed in range(400)]

    assert set(drawn) == {1, 2}
    assert np.mean(drawn) == pytest.approx(1.25, abs=0.08)


def test_a_whole_number_is_not_rounded():
    drawn = {
        share_out(0.2, 100, 50, PurposeCounts(8, 0), generator(seed)).audit for seed in range(200)
    }

    assert drawn == {2}


def test_the_method_leaves_the_audit_its_share_of_what_is_left():
    assert share_out(0.2, 10, 50, PurposeCounts(), generator()) == PurposeCounts(learn=8, audit=0)
    assert share_out(0.2, 2, 50, PurposeCounts(8, 0), generator()) == PurposeCounts(
        learn=0, audit=2
    )
    assert share_out(0.2, 1, 50, PurposeCounts(), generator()) == PurposeCounts(learn=1, audit=0)


def test_nothing_is_allowed_when_nothing_is_left():
    assert share_out(0.2, 0, 50, PurposeCounts(8, 0), generator()) == PurposeCounts(0, 0)


def test_without_a_limit_a_turn_may_ask_about_all_its_samples():
    assert share_out(0.2, math.inf, 50, PurposeCounts(8, 0), generator()) == PurposeCounts(48, 2)


def test_without_an_audit_everything_is_the_methods():
    assert share_out(0.0, 7, 50, PurposeCounts(8, 0), generator()) == PurposeCounts(7, 0)


@pytest.mark.parametrize(("share", "asks"), [(1.0, True), (0.2, False)])
def test_where_the_method_does_not_ask_the_audit_has_its_own_pace(share, asks):
    assert share_out(share, 10, 50, PurposeCounts(), generator(), method_asks=asks).audit == 1


def test_a_question_to_several_people_costs_several_labels():
    table = ServiceLabelsTable(budget=10, per_hour=7, policy="majority", answers=3)

    assert question_limit(table) == 3
    assert hourly_limit(table) == 2
    assert question_limit(ServiceLabelsTable(budget="unlimited")) is None
    assert hourly_limit(ServiceLabelsTable()) == math.inf


def test_a_planned_budget_pays_even_beyond_its_limit():
    budget = PlannedBudget(5)
    budget.spend(2)
    assert budget.remaining == 3
    budget.spend(4)

    assert (budget.spent, budget.remaining) == (6, 0)
    assert PlannedBudget(None).remaining == math.inf


def test_a_planned_budget_may_be_lowered():
    budget = PlannedBudget(5)
    budget.load_state_dict({"spent": 7})

    assert (budget.spent, budget.remaining) == (7, 0)


RARELY_SAVED = {"batch_size": 10, "checkpoint_every": 1000}


def run(service, rounds, say):
    learner = service.start()
    for number in range(rounds):
        service.serve_batch(number)
        while learner.run_once():
            pass
        service.answer(say)
    while learner.run_once():
        pass
    return learner


def spent(service):
    counts = service.storage.questions.counts()
    return counts.open + counts.answered + counts.forgotten


def test_the_budget_is_exact_when_questions_are_skipped(miniature):
    service = miniature(labels={"budget": 12, "audit_share": 0.25})
    learner = run(service, 8, lambda question: None if question.question % 3 == 0 else 1)

    assert spent(service) == 12 == learner.memory.ledger.budget.spent
    counts = service.storage.questions.counts()
    assert counts.skipped > 0
    assert counts.asked == 12 + counts.skipped
    assert learner.memory.ledger.received == counts.answered


def test_the_service_asks_per_thousand_samples_and_faster_after_an_alarm(miniature):
    labels = {"budget": 100, "audit_share": 0.0, "per_1000": 100.0, "first": 0}
    asked = {}
    for name, boosted in (("calm", -1), ("hurried", 99)):
        service = miniature(name, labels=labels, method=METHOD)
        learner = service.start()
        learner.memory.boosted_until = boosted
        for number in range(6):
            service.serve_batch(number)
            learner.run_once()
        asked[name] = service.storage.questions.counts().asked

    assert asked == {"calm": 6, "hurried": 12}


def test_expired_questions_are_refunded(miniature):
    service = miniature(labels={"budget": 5, "audit_share": 0.0, "expiry_seconds": 100.0})
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    assert learner.memory.ledger.budget.remaining == 0

    service.now += 101
    learner.run_once()

    assert service.storage.questions.counts().expired == 5
    assert learner.memory.ledger.budget.remaining == 5


def test_a_forgotten_question_stays_paid_for(miniature):
    service = miniature(labels={"budget": 5, "audit_share": 0.0})
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    service.storage.samples.forget(service.storage.questions.recent(1)[0].sample, "admin")

    for _ in range(2):  # also where the turn that asked is replayed without the sample
        run(service, 2, lambda question: 1)

        assert spent(service) == 5 == service.learner.memory.ledger.budget.spent
        assert service.storage.questions.counts().asked == 5


def change_labels(service, **values):
    """Let the service be started with other settings next time."""
    table = service.settings.labels.model_copy(update=values)
    service.settings = service.settings.model_copy(update={"labels": table})


def test_a_refunded_question_stays_refunded_when_its_sample_is_forgotten(miniature):
    service = miniature(labels={"budget": 5, "audit_share": 0.0})
    learner = service.start()
    service.serve_batch(0)
    learner.run_once()
    skipped = service.storage.questions.recent(1)[0]
    service.answer(lambda question: None if question == skipped else 1)
    learner.run_once()
    service.serve_batch(1)
    learner.run_once()
    assert service.storage.questions.counts().asked == 6

    service.storage.samples.forget(skipped.sample, "admin")

    for _ in range(2):  # the second time the whole log is replayed
        run(service, 2, lambda question: 1)
        assert spent(service) == 5 == service.learner.memory.ledger.budget.spent
        assert service.storage.questions.counts().asked == 6
        assert not service.learner.memory.ledger.open


@pytest.mark.parametrize("change", [{"budget": 3}, {"per_class": 1}])
def test_turns_are_replayed_after_a_limit_was_lowered(miniature, change):
    service = miniature(labels={"budget": 8, "audit_share": 0.25}, learning=RARELY_SAVED)
    run(service, 3, lambda question: 1)
    asked = service.storage.questions.counts().asked
    before = service.learner.memory

    change_labels(service, **change)
    learner = run(service, 0, lambda question: 1)

    assert service.storage.questions.counts().asked == asked == 8
    assert learner.memory.ledger.budget.spent == 8
    assert learner.memory.asked == before.asked
    assert learner.memory.asked_by_class == before.asked_by_class


def test_nobody_is_asked_after_the_budget_was_lowered_below_what_is_spent(miniature):
    service = miniature(labels={"budget": 8})
    run(service, 3, lambda question: 1).save()

    change_labels(service, budget=3)
    learner = run(service, 2, lambda question: 1)

    assert service.storage.questions.counts().asked == 8
    assert learner.memory.ledger.budget.remaining == 0
    assert service.storage.turns.recent(1)[0][1]["left"] == 0


def test_no_more_than_so_many_questions_are_put_in_an_hour(miniature):
    service = miniature(labels={"budget": 100, "per_hour": 6, "audit_share": 0.0})
    learner = service.start()
    for number in range(3):
        service.serve_batch(number)
        learner.run_once()
        service.now += 10
    assert service.storage.questions.counts().asked == 6

    service.now += 3600
    service.serve_batch(9)
    learner.run_once()

    assert 6 < service.storage.questions.counts().asked <= 12


def test_no_class_is_asked_about_beyond_its_quota_by_the_learner(miniature):
    service = miniature(labels={"budget": 100, "per_class": 3, "audit_share": 0.0})
    run(service, 5, lambda question: None if question.question % 4 == 0 else 1)

    asked = Counter(
        question.guesses[0][0]
        for question in service.storage.questions.recent(100)
        if question.state in ("open", "answered")
    )

    assert asked
    assert max(asked.values()) <= 3
    assert service.storage.questions.counts().skipped > 0
    memory = service.learner.memory
    assert {kind: count for kind, count in memory.asked_by_class.items() if count} == asked


def test_the_audit_has_its_share_and_the_method_never_sees_it(miniature):
    service = miniature(labels={"budget": 24, "audit_share": 0.3, "early_audit_share": 0.3})
    learner = run(service, 10, lambda question: 1)

    asked = service.storage.questions.recent(1000)
    audited = {one.sample for one in asked if one.purpose == "audit"}
    taught = {one.sample for one in asked if one.purpose == "learn"}
    assert len(asked) == 24
    assert len(audited) == pytest.approx(7.2, abs=2)
    assert not audited & taught
    method = learner.memory.method
    kept = {*method.high_entropy_anchors.rows.samples, *method.low_entropy_anchors.rows.samples}
    assert not audited & kept


def count_purposes(service):
    return Counter(one.purpose for one in service.storage.questions.recent(1000))


def test_the_first_questions_of_the_audit_have_a_greater_share(miniature):
    service = miniature(
        labels={"budget": 400, "per_1000": 400, "audit_share": 0.2, "early_audit_share": 0.5},
    )
    while count_purposes(service)["audit"] < EARLY_AUDIT:
        run(service, 2, lambda question: 1)
    early = count_purposes(service)
    run(service, 20, lambda question: 1)
    later = count_purposes(service) - early

    assert early["audit"] == pytest.approx(early["learn"], abs=5)
    assert later["audit"] == pytest.approx(0.25 * later["learn"], abs=5)
    assert later["audit"] > 2  # what was too much before is not taken back


def test_every_place_of_a_batch_is_audited_equally_often(miniature):
    service = miniature(
        method={"name": "source_only"},
        labels={"budget": "unlimited", "audit_share": 0.5},
        learning={"batch_size": 5, "checkpoint_every": 1000},
    )
    learner = service.start()
    places = np.zeros(5)
    for number in range(200):
        learner.memory.turn = number - 1
        turn = learner._planner._turn(tuple("abcde"), (), ())
        places["abcde".index(turn.audit[0])] += 1

    assert places.sum() == 200
    expected = 40
    assert ((places - expected) ** 2 / expected).sum() < 9.49  # 95 % of chi-squared, 4 degrees


@pytest.mark.parametrize(
    ("settings", "per_1000"),
    [
        ({}, None),
        ({"per_1000": 50.0}, 50.0),
        ({"budget": 100, "spread_over": 2000, "audit_share": 0.0}, 50.0),
        ({"budget": 100, "spread_over": 2000, "policy": "majority", "answers": 2}, 17.5),
    ],
)
def test_the_method_asks_at_the_pace_of_the_labels_table(settings, per_1000):
    assert label_rate(ServiceLabelsTable(**settings)).per_1000 == per_1000
