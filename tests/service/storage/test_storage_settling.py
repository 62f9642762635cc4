import pytest

from attakit.service.storage import LabelRules, QuestionCounts
from attakit.service.storage.deciding import Vote, decide
from service_records import NOW, ask, say, turn


def outcomes(storage, clock, seconds=5.0):
    clock.sleep(seconds)
    storage.questions.settle()
    return [(one.sample, one.state, one.label) for one in storage.questions.settled()]


def test_each_kind_of_answer_settles_as_what_it_is(storage, clock):
    for number, choice in zip(ask(storage, *"abc"), (3, "skip", "none"), strict=True):
        say(storage, number, "Ada", choice)

    assert outcomes(storage, clock) == [
        ("a", "answered", 3),
        ("b", "skipped", None),
        ("c", "none", None),
    ]
    assert storage.questions.settled()[0].settled == NOW + 5
    assert [event.details["state"] for event in storage.events.recent(3, kind="settled")] == [
        "none",
        "skipped",
        "answered",
    ]


def test_a_question_settles_so_long_after_the_answer_that_decides(storage, clock):
    ask(storage, "a")
    say(storage, 1, "Ada", 3)

    assert outcomes(storage, clock, 4.9) == []
    assert outcomes(storage, clock, 0.1) == [("a", "answered", 3)]
    assert storage.questions.settle() == 0


def test_what_nobody_answers_expires(storage, clock):
    ask(storage, "a")

    assert outcomes(storage, clock, 86_399.9) == []
    assert outcomes(storage, clock, 0.1) == [("a", "expired", None)]
    assert storage.questions.counts() == QuestionCounts(asked=1, expired=1)


def test_nothing_expires_under_the_eyes_of_someone(storage, clock):
    ask(storage, "a")
    clock.sleep(86_390)
    storage.questions.lease("Ada")

    assert outcomes(storage, clock, 20) == []
    assert say(storage, 1, "Ada", 3) == "accepted"
    assert outcomes(storage, clock, 5) == [("a", "answered", 3)]


def test_an_answer_that_was_accepted_does_not_expire(storage, clock):
    ask(storage, "a")
    clock.sleep(90_000)

    assert say(storage, 1, "Ada", 3) == "accepted"
    assert outcomes(storage, clock, 4) == []
    assert outcomes(storage, clock, 1) == [("a", "answered", 3)]


def test_a_majority_is_reached_early(open_database, clock):
    storage = open_database(policy="majority", answers=3)
    ask(storage, "a")
    storage.questions.lease("Cid")
    say(storage, 1, "Ada", 3)
    assert outcomes(storage, clock, 50) == []
    say(storage, 1, "Bob", 3)

    assert say(storage, 1, "Cid", 4) == "conflict"
    assert storage.questions.lease("Dan") is None
    assert outcomes(storage, clock) == [("a", "answered", 3)]


def test_a_tie_asks_one_more_person(open_database, clock):
    storage = open_database(policy="majority", answers=2)
    ask(storage, "a")
    say(storage, 1, "Ada", 3)
    say(storage, 1, "Bob", 4)
    assert outcomes(storage, clock, 100) == []

    assert storage.questions.lease("Cid").question.question == 1
    assert storage.questions.lease("Dan") is None
    say(storage, 1, "Cid", 5)
    assert storage.questions.lease("Dan").question.question == 1
    say(storage, 1, "Dan", 5)
    assert outcomes(storage, clock) == [("a", "answered", 5)]


def test_without_a_majority_a_question_expires(open_database, clock):
    storage = open_database(policy="majority", answers=2)
    ask(storage, "a")
    say(storage, 1, "Ada", 3)
    say(storage, 1, "Bob", 4)

    assert outcomes(storage, clock, 86_400) == [("a", "expired", None)]
    assert say(storage, 1, "Cid", 4) == "late"


def test_an_outcome_is_handed_over_until_a_turn_takes_it(storage, clock):
    ask(storage, "a", "b")
    say(storage, 1, "Ada", 3)
    outcomes(storage, clock)
    storage.turns.plan(turn(0, settled=(1,)))

    assert storage.questions.settled() == ()
    assert storage.questions.get([1])[0].label == 3


def test_the_newest_audit_questions_with_an_opinion_are_kept_apart(storage, clock):
    ask(storage, "learn")
    audit = ask(storage, *"abcd", purpose="audit")
    for number, choice in zip((1, *audit), (3, 3, "skip", "none", 4), strict=True):
        say(storage, number, "Ada", choice)
        outcomes(storage, clock)

    assert [one.sample for one in storage.questions.audited(10)] == ["d", "c", "a"]
    assert [one.sample for one in storage.questions.audited(2)] == ["d", "c"]


def test_counts_tell_what_became_of_questions(storage, clock):
    for number, choice in zip(ask(storage, *"abc"), (3, "skip", "none"), strict=True):
        say(storage, number, "Ada", choice)
    outcomes(storage, clock)
    ask(storage, "d", "e")
    storage.samples.forget("e", "root")

    assert storage.questions.counts() == QuestionCounts(
        asked=5, open=1, answered=1, skipped=1, none=1, forgotten=1
    )


@pytest.mark.parametrize(
    ("people", "labels", "counts", "wanted"),
    [
        (1, [], None, 1),
        (1, [3], 3, 0),
        (3, [3], None, 2),
        (3, [3, 3], 3, 0),
        (3, [3, 4], None, 1),
        (3, [3, 4, 5], None, 1),
        (3, [3, 4, 5, 4], 4, 0),
        (4, [3, 3, 4], None, 1),
        (4, [3, 3, 4, 4], None, 1),
        (4, [3, 3, 4, 5], 3, 0),
        (5, [3, 3, 4], None, 2),
    ],
)
def test_a_majority_is_more_than_half_or_most_of_all(people, labels, counts, wanted):
    votes = [Vote(str(n), "label", label, float(n)) for n, label in enumerate(labels)]

    decision = decide(LabelRules("majority", people), votes)

    assert decision.wanted == wanted
    assert decision.choice == (None if counts is None else ("label", counts))
    assert decision.at == (None if counts is None else len(labels) - 1)
