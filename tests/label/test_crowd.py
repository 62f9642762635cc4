"""Several people answer each question."""

import pytest

from attakit.errors import SettingError
from attakit.label import Budget, Crowd, Delayed, KnownLabels, Ledger, Noisy, Skipping
from attakit.queries import Query, SampleId
from attakit.testing import check_oracle

SAMPLES = [SampleId(f"{number}.png") for number in range(40)]
TRUTH = {name: number % 4 for number, name in enumerate(SAMPLES)}
QUERIES = [Query(name, 0) for name in SAMPLES]


def person(name, rate=0.0, seed=0):
    return Noisy(KnownLabels(TRUTH, annotator=name), rate=rate, classes=4, seed=seed)


def people(*rates):
    return [person(f"person {n}", rate, seed=n) for n, rate in enumerate(rates)]


def right(crowd):
    crowd.ask(QUERIES)
    return sum(answer.label == TRUTH[answer.query.sample] for answer in crowd.collect())


@pytest.mark.parametrize("settle", ["majority", "reliability"])
@pytest.mark.parametrize("soft", [True, False])
def test_it_is_an_oracle(settle, soft):
    def make():
        slow = [Delayed(person("slow", 0.5), rounds=1), *people(0.1, 0.3)]
        return Crowd(slow, classes=4, answers=2, settle=settle, soft=soft)

    check_oracle(make, SAMPLES[:6])


def test_reliable_people_outvote_two_who_guess():
    rates = (0.0, 0.05, 0.75, 0.75, 0.75)
    by_count = right(Crowd(people(*rates), classes=4, settle="majority"))
    by_weight = right(Crowd(people(*rates), classes=4, soft=False))
    assert by_weight > by_count + 4


def test_a_doubtful_class_weighs_less():
    crowd = Crowd(people(0.0, 0.0, 0.75), classes=4, answers=2, soft=False)
    crowd.ask(QUERIES)
    weights = {answer.query.sample: answer.weight for answer in crowd.collect()}
    assert 0 <= min(weights.values()) < 0.9 < max(weights.values()) <= 1


def test_soft_answers_are_chances():
    crowd = Crowd(people(0.0, 0.1, 0.5), classes=4)
    crowd.ask(QUERIES[:3])
    assert all(sum(answer.chances) == pytest.approx(1) for answer in crowd.collect())


def test_a_question_waits_for_the_slowest_and_costs_one_label():
    crowd = Crowd([*people(0.0), Delayed(person("slow"), rounds=2)], classes=4, answers=2)
    ledger = Ledger(Budget(5))
    ledger.ask(QUERIES[:1])
    crowd.ask(QUERIES[:1])
    assert [len(crowd.collect()) for _ in range(2)] == [0, 0]
    ledger.settle(crowd.collect())
    assert (ledger.received, ledger.budget.remaining) == (1, 4)


def test_what_all_skip_is_refunded():
    crowd = Crowd([Skipping(person(name), rate=1) for name in "ab"], classes=4, answers=2)
    crowd.ask(QUERIES[:1])
    (answer,) = crowd.collect()
    assert not answer.says_something


def test_a_tie_is_not_always_broken_by_the_same_person():
    crowd = Crowd(people(0.0, 1.0), classes=4, answers=2, settle="majority")
    assert 8 < right(crowd) < 32


def test_yes_and_no_are_counted():
    crowd = Crowd(people(0.0, 0.0, 1.0), classes=4)
    crowd.ask([Query(SAMPLES[0], 0, proposed=0), Query(SAMPLES[0], 1, proposed=1)])
    assert [answer.kind for answer in crowd.collect()] == ["yes", "no"]


def test_more_answers_than_people_are_refused():
    with pytest.raises(SettingError, match="3 people must answer each question, but there are 2"):
        Crowd(people(0.0, 0.1), classes=4)
