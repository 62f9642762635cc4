import pytest

from attakit.errors import SettingError, UnknownQuestion
from attakit.service.storage import LabelRules
from attakit.service.storage.rows import AskedCounts
from service_records import NOW, ask, question, served


def shown(lease):
    return None if lease is None else lease.question.sample


def test_a_question_that_is_put_twice_is_there_once(storage):
    storage.samples.add(served("a", "b"))
    first = storage.questions.put([question("a"), question("b")])
    again = storage.questions.put([question("b", at=NOW + 9), question("a", turn=1)])

    assert len(set(first) | set(again)) == 3
    assert again[0] == first[1]
    assert storage.questions.get([first[1]])[0].at == NOW
    assert len(storage.events.recent(10, kind="question")) == 3
    assert storage.questions.put([]) == ()


def test_a_question_comes_back_as_it_was_put(storage):
    (number,) = ask(storage, "a", turn=4, purpose="audit")

    (found,) = storage.questions.get([number])

    assert found.question == number
    assert (found.sample, found.turn, found.purpose, found.version) == ("a", 4, "audit", 2)
    assert (found.score, found.guesses, found.at) == (0.7, ((1, 0.6), (2, 0.4)), NOW)
    assert (found.state, found.label, found.settled) == ("open", None, None)


def test_the_log_tells_by_which_version_and_with_which_score_it_was_asked(storage):
    (number,) = ask(storage, "a")

    (event,) = storage.events.recent(1)

    told = {"question": number, "sample": "a", "purpose": "learn", "version": 2, "score": 0.7}
    assert (event.kind, event.who, event.details) == ("question", "learner", told)


def test_people_are_shown_different_questions_oldest_first(storage):
    ask(storage, "a", "b")

    assert shown(storage.questions.lease("Ada")) == "a"
    assert shown(storage.questions.lease("Bob")) == "b"
    assert storage.questions.lease("Eve") is None


def test_who_holds_a_question_is_shown_it_again_and_for_longer(storage, clock):
    ask(storage, "a", "b")
    first = storage.questions.lease("Ada")
    clock.sleep(50)
    again = storage.questions.lease("Ada")

    assert shown(again) == "a"
    assert (first.until, again.until) == (NOW + 60, NOW + 110)


def test_a_lease_that_ran_out_goes_to_the_next(storage, clock):
    ask(storage, "a")
    storage.questions.lease("Ada")
    clock.sleep(59.9)
    assert storage.questions.lease("Bob") is None
    clock.sleep(0.1)

    assert shown(storage.questions.lease("Bob")) == "a"
    assert storage.questions.lease("Ada") is None


def test_a_released_question_goes_to_the_next(storage):
    (number,) = ask(storage, "a")
    storage.questions.lease("Ada")
    storage.questions.release(number, "Bob")
    assert storage.questions.lease("Bob") is None
    storage.questions.release(number, "Ada")

    assert shown(storage.questions.lease("Bob")) == "a"


def test_who_answered_or_skipped_is_not_asked_again(open_database):
    storage = open_database(policy="majority", answers=2)
    first, second = ask(storage, "a", "b")
    storage.questions.answer(first, "Ada", "skip", None, "one")
    storage.questions.answer(second, "Ada", "label", 1, "two")

    assert storage.questions.lease("Ada") is None
    assert shown(storage.questions.lease("Bob")) == "a"


def test_for_a_majority_as_many_people_as_wanted_see_a_question(open_database):
    storage = open_database(policy="majority", answers=3)
    ask(storage, "a", "b")

    seen = [shown(storage.questions.lease(who)) for who in ("Ada", "Bob", "Cid", "Dan")]

    assert seen == ["a", "a", "a", "b"]


def test_an_expired_question_is_shown_to_nobody(storage, clock):
    ask(storage, "a", at=NOW - 86_399)
    storage.questions.lease("Ada")
    clock.sleep(1)

    assert storage.questions.lease("Ada") is None
    assert storage.questions.lease("Bob") is None


@pytest.mark.parametrize("number", [0, 5, -1, 10**30])
def test_a_question_that_was_never_asked_is_told(storage, number):
    ask(storage, "a")

    for call in (
        lambda: storage.questions.get([number]),
        lambda: storage.questions.answers(number),
        lambda: storage.questions.release(number, "Ada"),
        lambda: storage.questions.answer(number, "Ada", "skip", None, "key"),
    ):
        with pytest.raises(UnknownQuestion, match="was never asked"):
            call()


def test_questions_are_counted_by_time_and_by_person(storage, clock):
    ask(storage, "a", "b")
    ask(storage, "c", "d", at=NOW + 100)
    storage.questions.answer(1, "Ada", "label", 7, "one")
    storage.questions.answer(4, "Ada", "skip", None, "two")
    clock.sleep(10)
    storage.questions.settle()

    assert storage.questions.asked_since(NOW) == AskedCounts(classes=4)
    assert storage.questions.asked_since(NOW + 100) == AskedCounts(classes=2)
    assert [one.sample for one in storage.questions.recent(3)] == ["d", "c", "b"]
    assert storage.questions.answered_by("Ada") == 2
    assert storage.questions.answered_by("Bob") == 0


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"policy": "last"}, "policy must be one of"),
        ({"answers": 0}, "answers must be at least 1"),
        ({"lease_seconds": -1}, "lease_seconds must be at least 0"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(rules, told):
    with pytest.raises(SettingError, match=told):
        LabelRules(**rules)
