import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from attakit.methods.reference import ReferenceClustering
from attakit.records import Selection
from attakit.select import SELECTORS, Uniform
from attakit.testing.selectors import check_selector


@pytest.mark.parametrize("name", SELECTORS)
def test_every_registered_selector_keeps_its_promises(name):
    check_selector(SELECTORS[name])


def test_clustering_as_in_the_public_code_keeps_its_promises():
    check_selector(lambda: ReferenceClustering(inits=1))


seeds = itertools.count()


class Broken:
    """Uniform, with one fault."""

    calls = 0

    def __init__(self, fault):
        self.fault = fault
        self.inner = Uniform()

    def select(self, candidates, known, limit, step):
        selection = self.inner.select(candidates, known, limit, step)
        return self.fault(self, selection, candidates, known, limit)


def forgets(self, selection, candidates, known, limit):
    self.calls += 1
    return selection if self.calls == 1 else Selection()


def differs_each_time_it_is_built(self, selection, candidates, known, limit):
    if not self.calls:
        self.inner = Uniform(seed=next(seeds))
    self.calls += 1
    return self.inner.select(candidates, known, limit, 0)


def ignores_the_limit(self, selection, candidates, known, limit):
    return replace(selection, samples=candidates.samples) if limit else Selection()


def asks_at_limit_zero(self, selection, candidates, known, limit):
    return selection if limit else Selection(candidates.samples[:1])


def asks_about_strangers(self, selection, candidates, known, limit):
    return replace(selection, samples=("stranger",))


def asks_about_known_samples(self, selection, candidates, known, limit):
    both = [name for name in candidates.samples if name in known.samples]
    return Selection(tuple(both[:limit])) if both else selection


def repeats_itself(self, selection, candidates, known, limit):
    return Selection((selection.samples * 2)[:limit])


def weighs_strangers(self, selection, candidates, known, limit):
    return replace(selection, weights={"stranger": 1.0})


def weighs_negatively(self, selection, candidates, known, limit):
    return replace(selection, weights=dict.fromkeys(selection.samples, -1.0))


def weighs_infinitely(self, selection, candidates, known, limit):
    return replace(selection, weights=dict.fromkeys(selection.samples, float("inf")))


def clusters_strangers(self, selection, candidates, known, limit):
    return replace(selection, clusters={"stranger": 0})


def changes_its_input(self, selection, candidates, known, limit):
    known.weights.add_(1)
    return selection


def draws_from_torch(self, selection, candidates, known, limit):
    torch.rand(1)
    return selection


def draws_from_numpy(self, selection, candidates, known, limit):
    np.random.random()
    return selection


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (forgets, "the same choice twice"),
        (differs_each_time_it_is_built, "the same settings must choose the same"),
        (ignores_the_limit, "chose 20 samples with candidates and known samples, limit 1"),
        (asks_at_limit_zero, "a limit of 0 must choose nothing"),
        (asks_about_strangers, "which are not candidates"),
        (asks_about_known_samples, "which are known already"),
        (repeats_itself, "more than once"),
        (weighs_strangers, "neither chosen nor known"),
        (weighs_negatively, "must be finite and not negative"),
        (weighs_infinitely, "must be finite and not negative"),
        (clusters_strangers, "in clusters, which were not there"),
        (changes_its_input, "must not be changed"),
        (draws_from_torch, "global random state"),
        (draws_from_numpy, "global random state"),
    ],
)
def test_a_fault_is_found_and_named(fault, message):
    with pytest.raises(AssertionError, match=message):
        check_selector(lambda: Broken(fault))
