"""Questions that a page fetches ahead."""

from __future__ import annotations

import pytest

from attakit.service.storage import LabelRules, open_storage
from attakit.service.storage.asking import MOST_LEASES
from attakit.service.storage.rows import Question, ServedSample


@pytest.fixture
def storage(tmp_path):
    opened = open_storage(tmp_path, labels=LabelRules(), clock=lambda: 100.0)
    for name in "abcdefgh":
        opened.samples.add([ServedSample(name, b"x", 0, 0, 0.5, 1.0, 100.0)])
        opened.questions.put([Question(0, name, 0, "learn", 0, 1.0, ((0, 0.5),), 100.0)])
    yield opened
    opened.close()


def samples(*leases):
    return [lease.question.sample for lease in leases]


def test_a_person_gets_another_question_besides_those_they_hold(storage):
    first = storage.questions.lease("ada")
    second = storage.questions.lease("ada", [first.question.question])

    assert samples(first, second, storage.questions.lease("bob")) == ["a", "b", "c"]


def test_each_of_several_leases_is_renewed_by_naming_the_others(storage):
    first = storage.questions.lease("ada").question.question
    second = storage.questions.lease("ada", [first]).question.question

    assert storage.questions.lease("ada", [second]).question.question == first
    assert storage.questions.lease("ada", [first]).question.question == second


def test_what_is_not_named_is_given_back(storage):
    first = storage.questions.lease("ada").question.question
    storage.questions.lease("ada", [first])

    storage.questions.lease("ada")

    held = [storage.questions.lease("bob"), storage.questions.lease("eve")]
    assert sum(lease is not None for lease in held) == 2


def test_questions_held_besides_survive_an_undo(storage):
    first = storage.questions.lease("ada").question.question
    second = storage.questions.lease("ada", [first]).question.question
    storage.questions.answer(first, "ada", "label", 0, "k1")

    assert storage.questions.undo("ada", "k2", [second]).question.question == first

    assert samples(storage.questions.lease("ada", [second])) == ["a"]
    assert samples(storage.questions.lease("bob")) == ["c"]


def hold(storage, annotator, count):
    """The numbers of so many questions, leased one besides the others."""
    held = []
    for _ in range(count):
        held.append(storage.questions.lease(annotator, held).question.question)
    return held


def test_nobody_holds_more_questions_than_a_page_needs(storage):
    held = hold(storage, "ada", MOST_LEASES)

    assert storage.questions.lease("ada", held) is None
    assert len(hold(storage, "bob", 8 - MOST_LEASES)) == 3


def test_who_holds_as_many_as_they_may_can_renew_each(storage):
    held = hold(storage, "ada", MOST_LEASES)

    for one in held:
        others = [other for other in held if other != one]
        assert storage.questions.lease("ada", others).question.question == one


def test_an_answer_makes_room_for_another_question(storage):
    first, *held = hold(storage, "ada", MOST_LEASES)

    storage.questions.answer(first, "ada", "label", 0, "k1")

    assert samples(storage.questions.lease("ada", [first, *held])) == ["f"]


def test_what_is_named_besides_but_not_held_takes_no_room(storage):
    assert samples(storage.questions.lease("ada", [4, 5, 6, 7, 8])) == ["a"]


def test_taking_answers_back_gives_nobody_more_than_they_may_hold(storage):
    answered = hold(storage, "ada", 3)
    for one in answered:
        storage.questions.answer(one, "ada", "label", 0, f"k{one}")
    held = hold(storage, "ada", MOST_LEASES)

    for one in reversed(answered):
        held.insert(0, storage.questions.undo("ada", f"u{one}", held).question.question)

    assert held == [1, 2, 3, 4, 5, 6, 7, 8]
    assert samples(*(storage.questions.lease(name) for name in ("bob", "eve", "dan"))) == [
        "f",
        "g",
        "h",
    ]
