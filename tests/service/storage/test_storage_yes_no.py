"""Questions that propose a class: what people may say, and what counts."""

import pytest

from attakit.errors import LabelError
from attakit.service.storage import LabelRules, QuestionCounts
from attakit.service.storage.deciding import Vote, decide
from attakit.service.storage.rows import AskedCounts
from service_records import NOW, ask, say


def outcomes(storage, clock):
    clock.sleep(5.0)
    storage.questions.settle()
    return [(one.state, one.label) for one in storage.questions.settled()]


def test_each_kind_of_answer_settles_as_what_it_is(storage, clock):
    said = ("yes", "no", 4, "none", "skip")
    for number, choice in zip(ask(storage, *"abcde", proposed=2), said, strict=True):
        assert say(storage, number, "Ada", choice) == "accepted"

    assert outcomes(storage, clock) == [
        ("answered", 2),
        ("no", None),
        ("answered", 4),
        ("none", None),
        ("skipped", None),
    ]
    assert storage.questions.counts() == QuestionCounts(
        asked=5, answered=2, no=1, none=1, skipped=1, yes_no=4
    )


def test_a_yes_is_the_label_of_the_proposed_class(storage):
    (number,) = ask(storage, "a", proposed=2)

    assert say(storage, number, "Ada", "yes", "one") == "accepted"
    assert say(storage, number, "Ada", "yes", "one") == "repeated"
    assert say(storage, number, "Ada", 2) == "repeated"
    assert say(storage, number, "Ada", "no") == "conflict"
    first, *_ = storage.questions.answers(number)
    assert (first.kind, first.label) == ("label", 2)


@pytest.mark.parametrize("choice", ["yes", "no"])
def test_where_nothing_is_proposed_there_is_no_yes_or_no(storage, choice):
    (number,) = ask(storage, "a")

    with pytest.raises(LabelError, match="Question 1 asks for the class and proposes none"):
        say(storage, number, "Ada", choice)
    assert storage.questions.answers(number) == ()


def test_a_no_that_comes_late_is_late(storage, clock):
    (number,) = ask(storage, "a", proposed=1)
    say(storage, number, "Ada", "no")
    outcomes(storage, clock)

    assert say(storage, number, "Bob", "no") == "late"


def test_a_no_can_be_undone_until_it_is_settled(storage, clock):
    (number,) = ask(storage, "a", proposed=1)
    say(storage, number, "Ada", "no")

    assert storage.questions.undo("Ada", "undo").question.proposed == 1
    say(storage, number, "Ada", "yes")
    assert outcomes(storage, clock) == [("answered", 1)]


def votes(*said):
    pairs = [(one, None) if isinstance(one, str) else ("label", one) for one in said]
    return [Vote(str(at), kind, label, float(at)) for at, (kind, label) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ((1, 1), ("label", 1)),
        (("no", "no"), ("no", None)),
        (("no", 3), ("no", None)),  # both say that it is not the proposed class
        ((3, "none", 1), ("no", None)),
        ((3, 3), ("label", 3)),
        (("none", "none"), ("none", None)),
        ((1, "no", "skip"), None),
        (("skip", "no", "no"), ("no", None)),
    ],
)
def test_people_who_name_other_classes_agree_that_it_is_not_the_proposed_one(said, choice):
    rules = LabelRules("majority", answers=3)

    assert decide(rules, votes(*said), proposed=1).choice == choice


def test_those_who_agree_with_a_no_count(open_database, clock):
    storage = open_database(policy="majority", answers=3)
    (number,) = ask(storage, "a", proposed=1)
    for who, choice in (("Ada", "no"), ("Bob", "yes"), ("Cyd", 2)):
        say(storage, number, who, choice)
    before = [one.counts for one in storage.questions.answers(number)]

    assert outcomes(storage, clock) == [("no", None)]
    assert [one.counts for one in storage.questions.answers(number)] == before
    assert before == [True, False, True]


def test_yes_no_questions_are_counted_apart_since_they_have_their_own_price(storage):
    ask(storage, "a", "b", proposed=1)
    ask(storage, "c")

    assert storage.questions.asked_since(NOW) == AskedCounts(classes=1, yes_no=2)


def test_a_yes_says_nothing_about_whether_people_agree_with_the_source_model(storage, clock):
    """Only a yes would count, so that everybody seemed to agree."""
    for number in ask(storage, "a", "b", proposed=1):
        say(storage, number, "Ada", "yes")
    outcomes(storage, clock)

    assert storage.questions.compared(10) == ()


def test_open_questions_that_are_answered_already_are_not_wanted_again(storage):
    first, _ = ask(storage, "a", "b")
    say(storage, first, "Ada", 1)

    assert [one.sample for one in storage.questions.unanswered()] == ["b"]
    storage.questions.undo("Ada", "undo")
    assert [one.sample for one in storage.questions.unanswered()] == ["a", "b"]
