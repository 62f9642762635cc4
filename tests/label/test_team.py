"""Models first, people for the rest, within one budget."""

import pytest

from attakit.errors import SettingError
from attakit.label import Budget, Delayed, KnownLabels, Ledger, ModelOracle, Team
from attakit.queries import Query, SampleId
from attakit.testing import check_oracle

SAMPLES = [SampleId(name) for name in "abcd"]
TRUTH = dict.fromkeys(SAMPLES, 0)


def model(name="model", price=None, **table):
    return ModelOracle(lambda names: [table[each] for each in names], price=price, annotator=name)


def queries(*names, step=0):
    return [Query(SampleId(name), step) for name in names]


def answered(team, *names):
    team.ask(queries(*names))
    return {answer.query.sample: (answer.annotator, answer.label) for answer in team.collect()}


def test_people_get_what_the_model_leaves():
    team = Team([model(a=1, b=None)], KnownLabels(TRUTH))

    assert answered(team, "a", "b") == {"a": ("model", 1), "b": ("known", 0)}


def test_people_get_what_models_disagree_on():
    first, second = model("first", a=1, b=1, c=[0.1, 0.9]), model("second", a=1, b=0, c=1)
    team = Team([first, second], KnownLabels(TRUTH))

    found = answered(team, "a", "b", "c")
    assert found["a"] == ("first", 1)
    assert found["b"] == ("known", 0)
    assert found["c"][0] == "first"  # likeliest is the class the second one names


def test_without_people_such_questions_are_skipped():
    team = Team([model(a=1, b=None)])

    assert answered(team, "a", "b") == {"a": ("model", 1), "b": ("team", None)}
    assert team.pending == 0


def test_people_may_be_slow():
    team = Team([model(a=1, b=None)], Delayed(KnownLabels(TRUTH), rounds=2))

    assert answered(team, "a", "b") == {"a": ("model", 1)}
    assert team.pending == 1
    assert team.collect() == ()
    assert [answer.annotator for answer in team.collect()] == ["known"]


def test_models_cost_little_and_people_the_full_price_of_one_budget():
    two = [model("one", 0.1, a=1, b=None, c=1), model("two", 0.2, a=1, b=1, c=0)]
    team, ledger = Team(two, KnownLabels(TRUTH)), Ledger(Budget(3))
    asked = queries("a", "b", "c")
    ledger.ask(asked)
    team.ask(asked)
    ledger.settle(team.collect())

    # a: both models, 0.3. b and c: people, one label each.
    assert ledger.cost == 2.3
    assert ledger.budget.remaining == 0.7


def test_it_keeps_the_promises_of_oracles():
    def made():
        people = Delayed(KnownLabels(TRUTH), rounds=1)
        slow = Delayed(model("slow", a=1, b=0, c=None, d=1), rounds=1)
        return Team([model(a=1, b=1, c=2, d=1), slow], people)

    check_oracle(made, SAMPLES)


def test_a_team_needs_a_model():
    with pytest.raises(SettingError, match="at least one model"):
        Team([], KnownLabels(TRUTH))
