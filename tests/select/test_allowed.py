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


@pytest.mark.parametrize(("due", "asked"), [(None, 3), (2, 2), (0, 0), (9, 3)])
def test_no_more_is_asked_than_is_due_and_allowed(due, asked):
    found = select_allowed(Uniform(), rows(*[0] * 9), NOTHING, Allowance(3, due=due), step=0)

    assert len(found.samples) == asked


def test_a_repeated_step_asks_again_even_if_less_is_due_by_now():
    allowance = Allowance(2, due=0, repeat={"0-1"})

    assert select_allowed(First(), rows(0, 0), NOTHING, allowance, step=0).samples == ("0-1",)


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
        self.selector = IncrementalClustering(initial_clusters=3, cluster_growth=1)

    def select(self, candidates, known, limit, step):
        allowance = replace(self.allowance, count=limit)
        return select_allowed(self.selector, candidates, known, allowance, step)


@pytest.mark.parametrize("limits", [{}, {"per_class": {0: 2, 1: 1}, "due": 2}])
def test_a_choice_within_an_allowance_keeps_to_the_contract_of_selectors(limits):
    check_selector(lambda: Allowed(**limits))
