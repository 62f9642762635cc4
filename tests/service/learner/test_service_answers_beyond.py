"""Answers that are no class of one person: none of these, and what several people say together."""

import pytest

from miniature_service import METHOD

ANCHORS = {"simatta": "high_entropy_anchors", "anchor_head": "anchors"}
METHODS = {"simatta": METHOD, "anchor_head": {"name": "anchor_head"}}


@pytest.fixture(params=METHODS)
def service(request, miniature):
    """Asks about many samples, of which two people look at each."""
    labels = {"per_1000": 600, "policy": "reliability", "answers": 2, "audit_share": 0.0}
    service = miniature(method=METHODS[request.param], labels=labels)
    service.start()
    return service


def say(service, choose):
    """Let Ada and Bob answer all questions; returns what was asked."""
    asked = set()
    for who in ("ada", "bob"):
        while (lease := service.storage.questions.lease(who)) is not None:
            number = lease.question.question
            asked.add(lease.question.sample)
            kind, label = choose(number, who)
            service.storage.questions.answer(number, who, kind, label, f"{number}-{who}")
    service.now += service.settings.labels.settle_seconds + 1
    while service.learner.run_once():
        pass
    return asked


def anchors(service):
    return getattr(service.learner.memory.method, ANCHORS[service.settings.method.name])


def test_none_of_these_is_no_class_but_is_not_asked_about_again(service):
    service.serve_batch(0)
    service.learner.run_once()
    asked = say(service, lambda *_: ("none", None))

    memory = service.learner.memory
    assert len(anchors(service)) == 0
    assert memory.method.waiting.outside == len(asked) > 0
    assert memory.ledger.received == len(asked)  # somebody looked, so it is paid for
    assert service.storage.questions.counts().none == len(asked)
    states = [one.state for one in service.storage.questions.recent(100)]
    assert states == ["none"] * len(asked)


def test_a_method_learns_how_likely_people_who_disagree_make_each_class(service):
    service.serve_batch(0)
    service.learner.run_once()
    say(service, lambda number, who: ("label", number % 3 if who == "ada" else 0))

    questions = service.storage.questions.recent(100)
    torn = {one.sample: one.chances for one in questions if max(one.chances) < 0.99}
    rows = anchors(service).rows
    learned = dict(zip(rows.samples, rows.as_targets().shares.tolist(), strict=True))
    assert torn
    for sample, chances in torn.items():
        assert learned[sample] == pytest.approx(chances)


def test_what_is_saved_continues_alike(service):
    service.serve_batch(0)
    service.learner.run_once()
    say(service, lambda number, _: ("none", None) if number % 2 else ("label", 1))
    before = service.learner.memory.method.waiting.outside
    service.learner.save()

    service.start()

    assert service.learner.memory.method.waiting.outside == before > 0
