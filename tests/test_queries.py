"""Questions and answers are values: equal when they say the same, and fixed."""

from dataclasses import FrozenInstanceError

import pytest

from attakit.queries import Answer, Query, SampleId

A = SampleId("a")


def test_questions_are_told_apart_by_sample_and_step() -> None:
    questions = {
        Query(A, 0),
        Query(A, 0),
        Query(A, 1),
        Query(SampleId("b"), 0),
    }

    assert len(questions) == 3


def test_questions_and_answers_cannot_be_changed() -> None:
    answer = Answer(Query(A, 0), 1, "Ada")

    with pytest.raises(FrozenInstanceError):
        answer.label = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        answer.query.step = 2  # type: ignore[misc]
