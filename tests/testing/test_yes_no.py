"""The checks of yes/no questions catch methods that ask for something else or forget answers."""

import pytest

from attakit.methods import BiTTA, SourceOnly
from attakit.testing.yes_no import check_resume_between_yes_no_answers, check_yes_no_questions


class Sidestepping(BiTTA):
    """Proposes another class than it predicts."""

    def proposals(self, candidates, allowance):
        proposed = super().proposals(candidates, allowance)
        return {sample: (kind + 1) % 3 for sample, kind in proposed.items()}


class Denying(BiTTA):
    """Loses answers of no when it is saved."""

    stateful = tuple(name for name in BiTTA.stateful if name != "wrong")


class Unpolled(BiTTA):
    """Loses its open questions when it is saved."""

    stateful = tuple(name for name in BiTTA.stateful if name != "waiting")


class Unseeded(BiTTA):
    """Trains with other random numbers after it was resumed."""

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.seed += 1


def test_a_method_that_proposes_another_class_is_caught():
    with pytest.raises(AssertionError, match="were proposed where"):
        check_yes_no_questions(Sidestepping)


@pytest.mark.parametrize("forgetful", [Denying, Unpolled])
def test_a_method_that_forgets_between_answers_is_caught(forgetful):
    with pytest.raises(AssertionError, match="resumed between yes/no answers"):
        check_resume_between_yes_no_answers(forgetful)


def test_a_method_that_loses_open_questions_is_caught():
    with pytest.raises(AssertionError, match="open yes/no questions were lost"):
        check_yes_no_questions(Unpolled)


def test_a_method_that_learns_something_else_after_a_resume_is_caught():
    with pytest.raises(AssertionError, match="the resumed run has another state"):
        check_yes_no_questions(Unseeded)


@pytest.mark.parametrize("kind", [BiTTA, SourceOnly])
def test_a_method_that_remembers_or_never_asks_passes(kind):
    check_yes_no_questions(kind)
    check_resume_between_yes_no_answers(kind)
