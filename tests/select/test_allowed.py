"""A selector's choice within an allowance."""

from dataclasses import replace

import pytest
import torch

from attakit.queries import Allowance
from attakit.records import Rows, Selection
from attakit.select.allowed import select_allowed
from attakit.select.incremental import IncrementalClustering
from attakit.select.uniform import Uniform
from attakit.testing import check_selector


def rows(*classes):
    names = tuple(f"{kind}-{number}" for number, kind in enumerate(classes))
    logits = torch.eye(3)[list(classes)]
    features = torch.arange(float(len(classes))).reshape(-1, 1)
    return Rows(names, features, logits, torch.ones(len(classes)))


class First:
    """Takes the first candidates."""

    def __init__(self, count=100):
        self.count = count

    def select(self, candidates, known, limit, step):
        names = candidates.samples[: min(limit, self.count)]
        return Selection(names, dict.fromkeys(names, 1.0))


NOTHING = rows(0)
NOTHING = Rows((), NOTHING.features[:0], NOTHING.logits[:0], NOTHING.weights[:0])


def test_a_class_is_not_asked_about_beyond_its_quota():
    allowance = Allowance(10, per_class={0: 2, 1: 0, 2: 1})

    found = select_allowed(First(), rows(0, 0, 0, 1, 2, 2), NOTHING, allowance, step=0)

    assert found.samples == ("0-0", "0-1", "2-4")
    assert set(found.weights) == set(found.samples)


def test_a_quota_holds_over_several_steps_of_one_turn():
    allowance = Allowance(10, per_class={0: 2, 1: 9, 2: 9}, steps=range(4))

    found = select_allowed(First(count=1), rows(0, 0, 0, 1), NOTHING, allowance, step=0)

    assert found.samples == ("0-0", "0-1", "1-3")


def test_a_hurried_selector_asks_more_but_never_more_than_allowed():
    allowances = (
        Allowance(10, steps=range(5, 6)),
        Allowance(10, steps=range(5, 7)),
        Allowance(3, steps=range(5, 7)),
    )
    selector, many = Uniform(first=2, per_step=2.0), rows(*[0] * 20)

    calm, hurried, capped = (
        select_allowed(selector, many, NOTHING, allowance, step=0) for allowance in allowances
    )

    assert [len(found.samples) for found in (calm, hurried, capped)] == [2, 4, 3]
    assert len(set(hurried.samples)) == 4


def test_a_hurried_clustering_grows_by_more_clusters():
    selector = IncrementalClustering(initial_clusters=2, cluster_growth=1)
    allowance = Allowance(20, steps=range(3))

    found = select_allowed(selector, rows(*[0] * 20), NOTHING, allowance, step=0)

    assert len(found.samples) > 2


@pytest.mark.parametrize(
    ("repeat", "asked"),
    [(None, ("0-0", "0-1")), ({"0-2", "0-1"}, ("0-1", "0-2")), ({"0-1", "0-0"}, ("0-0", "0-1"))],
)
def test_a_repeated_step_asks_about_the_samples_of_the_first_time(repeat, asked):
    allowance = Allowance(2, repeat=repeat)

    found = select_allowed(First(), rows(0, 0, 0), NOTHING, allowance, step=0)

    assert found.samples == asked


@pytest.mark.parametrize("allowance", [Allowance(0), Allowance(0, repeat={"0-0"})])
def test_nothing_is_chosen_when_nothing_is_allowed(allowance):
    assert select_allowed(First(), rows(0, 0), NOTHING, allowance, step=0) == Selection()
    assert select_allowed(First(), NOTHING, NOTHING, Allowance(3), step=0) == Selection()


class Allowed:
    """A selector within an allowance, to check it as any other selector."""

    def __init__(self, **limits):
        self.allowance = Allowance(0, **limits)
        self.selector = IncrementalClustering(initial_clusters=3)

    def select(self, candidates, known, limit, step):
        allowance = replace(self.allowance, count=limit)
        return select_allowed(self.selector, candidates, known, allowance, step)


@pytest.mark.parametrize("limits", [{}, {"per_class": {0: 2, 1: 1}, "steps": (2, 3)}])
def test_a_choice_within_an_allowance_keeps_to_the_contract_of_selectors(limits):
    check_selector(lambda: Allowed(**limits))
