import pytest

from attakit.errors import LabelError
from attakit.service.storage import LabelRules, open_storage
from service_records import NOW, ask, say


def settle(storage, clock, seconds=5):
    clock.sleep(seconds)
    storage.questions.settle()
    return [(one.sample, one.state, one.label) for one in storage.questions.settled()]


def test_the_same_post_counts_once(storage):
    (number,) = ask(storage, "a")

    assert [say(storage, number, "Ada", 3, "key") for _ in range(3)] == [
        "accepted",
        "repeated",
        "repeated",
    ]
    (given,) = storage.questions.answers(number)
    assert (given.annotator, given.kind, given.label, given.at) == ("Ada", "label", 3, NOW)
    assert len(storage.events.recent(10, kind="answer")) == 1


def test_another_answer_under_a_used_key_is_a_conflict(storage):
    first, second = ask(storage, "a", "b")
    say(storage, first, "Ada", 3, "key")

    assert say(storage, first, "Ada", 4, "key") == "conflict"
    assert say(storage, second, "Ada", 3, "key") == "conflict"
    assert say(storage, first, "Bob", 3, "key") == "conflict"
    assert len(storage.questions.answers(first)) == 1
    assert storage.questions.answers(second) == ()


def test_the_first_answer_counts_and_the_others_are_logged(storage, clock):
    (number,) = ask(storage, "a")

    said = [say(storage, number, *who) for who in (("Ada", 3), ("Bob", 3), ("Cid", 4))]

    assert said == ["accepted", "repeated", "conflict"]
    assert [given.outcome for given in storage.questions.answers(number)] == said
    assert settle(storage, clock) == [("a", "answered", 3)]


def test_a_changed_mind_is_a_conflict_unless_the_newest_counts(open_database, clock):
    storage = open_database(policy="first")
    (number,) = ask(storage, "a")
    assert say(storage, number, "Ada", 3) == "accepted"
    assert say(storage, number, "Ada", 4) == "conflict"
    assert say(storage, number, "Ada", 3, "another key") == "repeated"

    newest = open_database(policy="newest")
    assert say(newest, number, "Ada", 5) == "accepted"
    assert say(newest, number, "Bob", "none") == "accepted"
    assert settle(newest, clock) == [("a", "none", None)]


def test_who_insists_has_said_the_newest(open_database, clock):
    storage = open_database(policy="newest")
    (number,) = ask(storage, "a")
    assert say(storage, number, "Ada", 3) == "accepted"
    assert say(storage, number, "Ada", 3, "another key") == "repeated"
    assert say(storage, number, "Bob", 5) == "accepted"
    assert say(storage, number, "Ada", 3, "a third key") == "accepted"

    assert settle(storage, clock) == [("a", "answered", 3)]


def test_an_answer_to_a_settled_question_is_late(storage, clock):
    (number,) = ask(storage, "a")
    say(storage, number, "Ada", 3)
    settle(storage, clock)

    assert say(storage, number, "Bob", 4, "key") == "late"
    assert say(storage, number, "Bob", 4, "key") == "late"
    assert storage.questions.get([number])[0].label == 3
    assert [given.outcome for given in storage.questions.answers(number)] == ["accepted", "late"]


def test_an_answer_after_the_lease_ran_out_counts_if_it_is_the_first(storage, clock):
    (number,) = ask(storage, "a")
    storage.questions.lease("Ada")
    clock.sleep(61)
    storage.questions.lease("Bob")

    assert say(storage, number, "Ada", 3) == "accepted"
    assert say(storage, number, "Bob", 4) == "conflict"
    assert storage.questions.lease("Bob") is None


@pytest.mark.parametrize(
    ("kind", "label"),
    [("label", None), ("label", -1), ("label", True), ("label", 2**40), ("skip", 1), ("maybe", 1)],
)
def test_kind_and_label_must_go_together(storage, kind, label):
    (number,) = ask(storage, "a")

    with pytest.raises(LabelError):
        storage.questions.answer(number, "Ada", kind, label, "key")

    assert storage.questions.answers(number) == ()


def test_a_class_that_the_model_has_not_is_refused(open_database):
    storage = open_database(classes=10)
    (number,) = ask(storage, "a")

    with pytest.raises(LabelError, match="needs a label from 0 to 9, got 10"):
        say(storage, number, "Ada", 10)


def test_an_answer_can_be_undone_until_it_is_settled(storage, clock):
    (number,) = ask(storage, "a")
    say(storage, number, "Ada", 3)
    clock.sleep(4.9)
    assert storage.questions.settle() == 0

    assert storage.questions.undo("Ada", "undo").question.question == number
    assert storage.questions.undo("Ada", "undo again") is None
    assert storage.questions.lease("Ada").question.question == number
    assert storage.questions.lease("Bob") is None
    assert say(storage, number, "Ada", 4) == "accepted"
    assert settle(storage, clock) == [("a", "answered", 4)]
    assert storage.questions.undo("Ada", "too late") is None
    given = storage.questions.answers(number)
    assert [(one.label, one.withdrawn) for one in given] == [(3, True), (4, False)]


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize(
    ("policy", "counting"),
    [("first", [True]), ("majority", [False, True, True]), ("newest", [False, True, True])],
)
def test_only_answers_that_are_not_overruled_count(tmp_path, clock, policy, counting, closed):
    rules = LabelRules(policy=policy, answers=3)
    with open_storage(tmp_path, labels=rules, clock=clock) as storage:
        (number,) = ask(storage, "a")
        for who, choice in (("Ada", 3), ("Bob", 4), ("Cyd", 4)):
            say(storage, number, who, choice)
        if closed:
            settle(storage, clock)

        given = storage.questions.answers(number)

    assert [one.counts for one in given if one.outcome == "accepted"] == counting
    assert not any(one.counts for one in given if one.outcome != "accepted")


def test_votes_count_while_nothing_is_decided_and_not_once_they_expired(tmp_path, clock):
    rules = LabelRules(policy="majority", answers=3, expiry_seconds=10)
    with open_storage(tmp_path, labels=rules, clock=clock) as storage:
        (number,) = ask(storage, "a", at=clock())
        say(storage, number, "Ada", 3)
        say(storage, number, "Bob", "skip")
        before = [one.counts for one in storage.questions.answers(number)]
        clock.sleep(11)
        storage.questions.settle()
        after = [one.counts for one in storage.questions.answers(number)]

    assert (before, after) == ([True, True], [False, False])


def test_the_same_undo_come_twice_takes_back_one_answer(storage):
    first, second = ask(storage, "a", "b")
    say(storage, first, "Ada", 3)
    say(storage, second, "Ada", 3)

    assert storage.questions.undo("Ada", "undo").question.question == second
    assert storage.questions.undo("Ada", "undo").question.question == second
    assert storage.questions.undo("Bob", "undo") is None
    assert storage.questions.answered_by("Ada") == 1
    assert storage.questions.undo("Ada", "another").question.question == first


@pytest.mark.parametrize(("policy", "choices"), [("newest", (1, 2)), ("majority", (1, 2, 2))])
def test_an_undo_returns_the_lease_that_the_database_holds(open_database, policy, choices):
    storage = open_database(policy=policy, answers=3, settle_seconds=100)
    (number,) = ask(storage, "a")
    for who, choice in zip(("Ada", "Bob", "Cid"), choices, strict=False):
        assert say(storage, number, who, choice) == "accepted"

    lease = storage.questions.undo("Ada", "undo")  # the other answers still decide

    assert (lease.question.question, lease.annotator, lease.until) == (number, "Ada", NOW + 60)
    assert storage.questions.lease("Ada") == lease
    assert storage.questions.undo("Ada", "undo") == lease
    say(storage, number, "Ada", 2)
    assert storage.questions.undo("Ada", "undo") is None


def test_an_undo_that_names_an_answer_takes_back_no_other(storage):
    first, second = ask(storage, "a", "b")
    for number, key in ((first, "one"), (second, "two")):
        storage.questions.answer(number, "Ada", "label", 3, key)

    assert storage.questions.undo("Ada", "undo", answer="one").question.question == first
    assert storage.questions.undo("Ada", "again", answer="one") is None
    assert storage.questions.undo("Bob", "of Bob", answer="two") is None
    assert storage.questions.undo("Ada", "unknown", answer="three") is None
    (kept,) = storage.questions.answers(second)
    assert not kept.withdrawn


def test_undo_takes_back_only_ones_own_answers(storage):
    (number,) = ask(storage, "a")
    say(storage, number, "Ada", 3)

    assert storage.questions.undo("Bob", "undo") is None


def test_after_undo_the_earlier_answer_is_shown_and_not_the_one_begun_since(storage):
    ask(storage, "a", "b")
    say(storage, storage.questions.lease("Ada").question.question, "Ada", 3)
    assert storage.questions.lease("Ada").question.sample == "b"
    storage.questions.undo("Ada", "undo")

    assert storage.questions.lease("Ada").question.sample == "a"
    assert storage.questions.lease("Bob").question.sample == "b"


def test_after_undo_whoever_came_later_makes_room(open_database):
    storage = open_database(policy="majority", answers=2)
    (number,) = ask(storage, "a")
    say(storage, number, "Ada", 3)
    say(storage, number, "Bob", 4)
    assert storage.questions.lease("Cid").question.question == number  # breaks the tie

    storage.questions.undo("Ada", "undo")

    assert storage.questions.lease("Ada").question.question == number
    assert storage.questions.lease("Cid") is None
