"""Whom to trust, estimated from answers that overlap."""

import numpy as np
import pytest

from attakit.errors import LabelError
from attakit.label.dawid_skene import Reliability, Vote, _Table, estimate_consensus
from attakit.randomness import generator


def simulated(rates, *, questions=200, answers=3, classes=10, seed=0):
    """Votes of people who err at different rates, and the truth."""
    draw = generator(seed, "test")
    truth = draw.integers(classes, size=questions).tolist()
    votes = []
    for question, right in enumerate(truth):
        for who in draw.permutation(len(rates))[:answers].tolist():
            wrong = (right + 1 + int(draw.integers(classes - 1))) % classes
            label = wrong if draw.random() < rates[who] else right
            votes.append(Vote(question, f"person {who}", label))
    return votes, truth


def accuracy(chances, truth):
    return np.mean([max(range(10), key=chances[n].__getitem__) == y for n, y in enumerate(truth)])


def test_the_rates_of_people_are_found():
    rates = (0.05, 0.1, 0.3, 0.5, 0.7)
    votes, _ = simulated(rates)
    found = estimate_consensus(votes, 10).annotators
    for number, rate in enumerate(rates):
        assert found[f"person {number}"].accuracy == pytest.approx(1 - rate, abs=0.1)
    assert sum(one.answers for one in found.values()) == len(votes)


def test_weighing_people_beats_counting_them():
    better = []
    for seed in range(5):
        votes, truth = simulated((0.05, 0.1, 0.3, 0.5, 0.7), seed=seed)
        majority = dict(enumerate(_Table(votes, 10).shares().tolist()))
        weighed = estimate_consensus(votes, 10).chances
        better.append(accuracy(weighed, truth) - accuracy(majority, truth))
    assert np.mean(better) > 0.05


def test_the_chances_say_how_often_they_are_right():
    votes, truth = simulated((0.1, 0.3, 0.5, 0.7), questions=600)
    chances = estimate_consensus(votes, 10).chances
    sure = np.mean([max(row) for row in chances.values()])
    assert sure == pytest.approx(accuracy(chances, truth), abs=0.05)


def test_a_habit_is_found_that_no_single_rate_describes():
    """Eve calls every 1 a 0, and is right about everything else."""
    votes = [Vote(n, who, n % 3) for n in range(300) for who in ("Ada", "Bob")]
    votes += [Vote(n, "Eve", 0 if n % 3 == 1 else n % 3) for n in range(300)]
    votes += [Vote("zero", "Eve", 0), Vote("two", "Eve", 2)]
    chances = estimate_consensus(votes, 3).chances
    assert chances["two"][2] > 0.9
    assert chances["zero"][0] < 0.7
    assert chances["zero"][1] > 0.3


def test_one_step_by_hand():
    """Two people, two classes, from the formulas in the file: no vote speaks for itself."""
    votes = [Vote("a", "Ada", 0), Vote("a", "Bob", 0), Vote("b", "Ada", 0)]
    table = _Table(votes, 2)
    start = table.shares()
    team = (3 + 3) / (3 + 4)
    assert table.rates(start) == pytest.approx([(2 + 4 * team) / 6, (1 + 4 * team) / 5])
    # About "a" there is one other vote of Ada's, a 0 where it is 0, and none of Bob's.
    ada, bob = (1 + 4 * team) / 5, team
    right = 3 / 4 * (40 * ada + 1) / 41 * bob
    wrong = 1 / 4 * (1 - ada) * (1 - bob)
    assert table.expect(start)[0, 0] == pytest.approx(right / (right + wrong))


def test_somebody_without_overlap_is_as_good_as_the_team():
    votes = [Vote(n, who, n % 4) for n in range(40) for who in ("Ada", "Bob")]
    found = estimate_consensus([*votes, Vote("alone", "Eve", 2)], 4)
    assert found.annotators["Eve"].accuracy > 0.9
    assert found.chances["alone"][2] > 0.9


def test_many_classes_are_estimated_without_matrices(monkeypatch):
    monkeypatch.setattr("attakit.label.dawid_skene._MOST_ENTRIES", 0)
    votes, truth = simulated((0.05, 0.1, 0.3, 0.5, 0.7))
    assert accuracy(estimate_consensus(votes, 10).chances, truth) > 0.85


def test_no_votes_say_nothing():
    assert estimate_consensus([], 3).annotators == {}


def test_an_unknown_class_is_refused():
    with pytest.raises(LabelError, match=r"labels must be 0 to 2, got \[5\]"):
        estimate_consensus([Vote("a", "Ada", 5)], 3)


def test_one_vote_is_believed_as_far_as_the_team_at_first():
    found = estimate_consensus([Vote("a", "Ada", 1)], 4)
    assert found.annotators == {"Ada": Reliability(pytest.approx(0.8, abs=0.03), 1)}
