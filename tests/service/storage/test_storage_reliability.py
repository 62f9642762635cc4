"""Labels that are settled by how reliable people are estimated to be."""

import pytest

from attakit.queries import Answer, Query
from attakit.service.learner.people import to_answer
from attakit.service.storage.settling import ANNOTATORS
from service_records import ask, say, turn

PEOPLE = ("Ada", "Bob", "Eve")


@pytest.fixture
def weighing(open_database):
    return open_database(policy="reliability", answers=2, classes=4)


def settle(storage, clock, *said):
    """Ask about samples; each row of answers is by name. Returns what is settled, in order."""
    first = storage.questions.counts().asked
    numbers = ask(storage, *(f"{first + n}" for n in range(len(said))), turn=first)
    for number, row in zip(numbers, said, strict=True):
        for who, choice in row.items():
            assert say(storage, number, who, choice) == "accepted"
    clock.sleep(5)
    storage.questions.settle()
    return storage.questions.get(numbers)


def learn_people(storage, clock):
    """Ada and Bob agree on everything, and Eve always says 0."""
    classes = [number % 4 for number in range(24)]
    settle(storage, clock, *({"Ada": label, "Bob": label} for label in classes))
    settle(storage, clock, *({"Ada": label, "Eve": 0} for label in classes))


def test_a_reliable_person_outweighs_another(weighing, clock):
    learn_people(weighing, clock)
    found = settle(weighing, clock, {"Eve": 0, "Bob": 2}, {"Ada": 3, "Bob": 3})
    assert [(one.state, one.label) for one in found] == [("answered", 2), ("answered", 3)]
    assert 0.5 < found[0].weight < found[1].weight <= 1


def test_a_tie_asks_nobody_else(weighing, clock):
    settle(weighing, clock, {"Ada": 1, "Bob": 2})
    assert weighing.questions.lease("Eve") is None


def test_nothing_is_decided_before_all_have_answered(weighing, clock):
    (one,) = settle(weighing, clock, {"Ada": 1})
    assert (one.state, one.label) == ("open", None)
    assert weighing.questions.lease("Bob").question.question == one.question


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        (("skip", "skip"), ("skipped", None)),
        (("none", "none"), ("none", None)),
        (("skip", 2), ("answered", 2)),
        ((2, "none"), ("answered", 2)),
    ],
)
def test_a_class_counts_if_half_of_the_people_name_one(weighing, clock, said, outcome):
    (one,) = settle(weighing, clock, dict(zip(PEOPLE, said, strict=False)))
    assert (one.state, one.label) == outcome
    assert (one.weight is None) == (one.label is None)


def test_yes_and_no_are_settled_by_the_majority(weighing, clock):
    (number,) = ask(weighing, "a", proposed=1)
    say(weighing, number, "Ada", "no")
    say(weighing, number, "Bob", "no")
    clock.sleep(5)
    weighing.questions.settle()
    (one,) = weighing.questions.get([number])
    assert (one.state, one.weight) == ("no", None)
    assert weighing.key_values.get(ANNOTATORS) == {}


@pytest.mark.parametrize("policy", ["majority", "reliability"])
def test_the_estimates_are_kept_for_the_dashboard(open_database, clock, policy):
    storage = open_database(policy=policy, answers=2, classes=4)
    settle(storage, clock, *({"Ada": n % 4, "Bob": n % 4} for n in range(20)))
    accuracy, answers = storage.key_values.get(ANNOTATORS)["Ada"]
    assert accuracy > 0.9
    assert answers == 20


def test_by_majority_every_label_weighs_the_same(open_database, clock):
    storage = open_database(policy="majority", answers=2)
    (one,) = settle(storage, clock, {"Ada": 1, "Bob": 1})
    assert (one.label, one.weight) == (1, None)


def test_one_answer_to_each_question_estimates_nothing(storage, clock):
    settle(storage, clock, {"Ada": 1})
    assert storage.key_values.get(ANNOTATORS) is None


def test_the_method_learns_as_much_as_the_label_weighs(weighing, clock):
    (one,) = settle(weighing, clock, {"Ada": 1, "Bob": 2})
    answer = to_answer(one, classes=4)
    assert answer == Answer(Query(one.sample, one.turn), one.label, "people", weight=one.weight)
    assert answer.weight < 0.7


def test_a_method_that_can_learns_how_likely_each_class_is(weighing, clock):
    learn_people(weighing, clock)
    (one,) = settle(weighing, clock, {"Bob": 2, "Eve": 0})
    answer = to_answer(one, classes=4, soft=True)
    assert (answer.kind, answer.weight) == ("soft", 1.0)
    assert sum(answer.chances) == pytest.approx(1.0)
    assert answer.chances[2] > answer.chances[0] > answer.chances[1]


def test_a_question_of_one_person_has_a_class_for_every_method(storage, clock):
    (one,) = settle(storage, clock, {"Ada": 1})
    assert to_answer(one, classes=4, soft=True).label == 1


def test_a_weight_is_forgotten_with_its_sample(weighing, clock):
    (one,) = settle(weighing, clock, {"Ada": 1, "Bob": 1})
    weighing.turns.plan(turn(0, settled=(one.question,)))
    weighing.samples.forget(one.sample, "admin")
    (gone,) = weighing.questions.get([one.question])
    assert (gone.label, gone.weight, gone.chances) == (None, None, None)
