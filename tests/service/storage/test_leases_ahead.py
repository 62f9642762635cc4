"""Questions that a page fetches ahead."""

from __future__ import annotations

import pytest

from attakit.service.storage import LabelRules, open_storage
from attakit.service.storage.records import Question, Served


@pytest.fixture
def storage(tmp_path):
    opened = open_storage(tmp_path, labels=LabelRules(), clock=lambda: 100.0)
    for name in "abc":
        opened.samples.add([Served(name, b"x", 0, 0, 0.5, 1.0, 100.0)])
        opened.questions.put([Question(0, name, 0, 0, "learn", 0, 1.0, ((0, 0.5),), 100.0)])
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

    assert storage.questions.undo("ada", "k2", [second]).question == first

    assert samples(storage.questions.lease("ada", [second])) == ["a"]
    assert samples(storage.questions.lease("bob")) == ["c"]
