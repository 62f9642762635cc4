"""Questions and answers are values: equal when they say the same, and fixed."""

from dataclasses import FrozenInstanceError

import pytest

from attakit.errors import LabelError
from attakit.queries import Allowance, Answer, Query, SampleId

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


def test_a_proposal_makes_another_question() -> None:
    assert len({Query(A, 0), Query(A, 0, proposed=0), Query(A, 0, proposed=1)}) == 3


def test_yes_is_a_label_and_no_rules_the_proposal_out() -> None:
    query = Query(A, 0, proposed=2)

    yes, no, skipped = Answer.yes(query, "Ada"), Answer.no(query, "Ada"), Answer.skipped(query, "")

    assert [(each.label, each.excluded) for each in (yes, no)] == [(2, ()), (None, (2,))]
    assert [each.kind for each in (yes, no, skipped)] == ["yes", "no", "skipped"]
    assert [each.says_something for each in (yes, no, skipped)] == [True, True, False]


def test_who_knows_the_class_answers_what_is_asked() -> None:
    kinds = [Answer.knowing(Query(A, 0, proposed=p), 1, "Ada").kind for p in (None, 1, 2)]

    assert kinds == ["label", "yes", "no"]


def test_a_question_without_proposal_has_no_yes() -> None:
    with pytest.raises(LabelError, match="proposes no class, so there is no yes or no"):
        Answer.yes(Query(A, 0), "Ada")


def test_questions_come_back_from_saved_states_old_and_new() -> None:
    proposing = Query(A, 3, proposed=0)

    assert Query.unpacked(proposing.packed()) == proposing
    assert Query.unpacked(["a", 3]) == Query.unpacked(["a", 3, 7]) == Query(A, 3)


def test_nothing_is_learned_from_a_skip_or_from_none_of_all_classes() -> None:
    query = Query(A, 0)

    assert not Answer.skipped(query, "Ada").teaches(3)
    assert not Answer(query, None, "Ada", excluded=(0, 1, 2)).teaches(3)
    assert not Answer(query, 1, "Ada", weight=0).teaches(3)
    assert Answer(query, None, "Ada", excluded=(0, 1)).teaches(3)


def test_cheap_yes_no_questions_are_more() -> None:
    assert Allowance(3, yes_no=12).of("yes_no").count == 12
    assert Allowance(3, yes_no=12).of("class").count == 3
    assert Allowance(3).of("yes_no").count == 3
