"""`check_selector`: the contract of every selector, including your own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from attakit.protocols import Selector
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.records import Rows, Selection
from attakit.testing.tiny import global_randomness

STEPS = (0, 1, 7)
LIMITS = (1, 3, 1000)


def check_selector(factory: Callable[[], Selector]) -> None:
    """Raise `AssertionError`, with a sentence, if a selector breaks its contract.

    Parameters
    ----------
    factory
        Function that makes the selector. It is called several times.

    Examples
    --------
    >>> from attakit.select import Uniform
    >>> check_selector(Uniform)
    """
    for case, candidates, known in _cases():
        for step in STEPS:
            for limit in LIMITS:
                where = f"with {case}, limit {limit}, step {step}"
                selection = _check_pure(factory, candidates, known, limit, step)
                _check_choice(selection, candidates, known, limit, where)
                _check_weights(selection, candidates, known, where)
            nothing = factory().select(candidates, known, 0, step)
            assert not nothing.samples, f"a limit of 0 must choose nothing (with {case})"


def make_rows(count: int, prefix: str, seed: int = 0) -> Rows:
    """Make rows in three loose groups, named prefix0, prefix1, …

    >>> make_rows(2, "new").samples
    ('new0', 'new1')
    """
    draws = generator(seed, "testing rows", prefix)
    features = draws.normal(size=(count, 4)) + 5 * draws.integers(3, size=(count, 1))
    return Rows(
        tuple(SampleId(f"{prefix}{number}") for number in range(count)),
        torch.tensor(features, dtype=torch.float32),
        torch.tensor(draws.normal(size=(count, 3)), dtype=torch.float32),
        torch.ones(count),
    )


def _cases() -> list[tuple[str, Rows, Rows]]:
    some, few, none = make_rows(20, "new"), make_rows(6, "known"), make_rows(0, "none")
    heavy = replace(few, weights=few.weights * 3)
    return [
        ("candidates and known samples", some, heavy),
        ("nothing known", some, none),
        ("no candidates", none, heavy),
        ("no candidates and nothing known", none, none),
        ("one candidate", make_rows(1, "new"), none),
        ("fewer points than clusters", make_rows(2, "new"), make_rows(1, "known")),
        ("identical candidates", replace(some, features=torch.ones(20, 4)), heavy),
        ("candidates that are known already", some, replace(few, samples=some.samples[:6])),
    ]


def _check_pure(
    factory: Callable[[], Selector], candidates: Rows, known: Rows, limit: int, step: int
) -> Selection:
    before = [tensor.clone() for tensor in _tensors(candidates, known)]
    chance = global_randomness()
    selector = factory()
    selection = selector.select(candidates, known, limit, step)
    again = selector.select(candidates, known, limit, step)
    other = factory().select(candidates, known, limit, step)
    assert selection == again, "the same arguments must give the same choice twice"
    assert selection == other, "two selectors with the same settings must choose the same"
    assert chance == global_randomness(), "global random state must be left alone"
    after = _tensors(candidates, known)
    unchanged = all(map(torch.equal, before, after))
    assert unchanged, "candidates and known samples must not be changed"
    return selection


def _check_choice(
    selection: Selection, candidates: Rows, known: Rows, limit: int, where: str
) -> None:
    chosen = selection.samples
    assert len(chosen) <= limit, f"chose {len(chosen)} samples {where}"
    foreign = set(chosen) - set(candidates.samples)
    assert not foreign, f"chose {sorted(foreign)}, which are not candidates, {where}"
    covered = set(chosen) & set(known.samples)
    assert not covered, f"chose {sorted(covered)}, which are known already, {where}"
    assert len(chosen) == len(set(chosen)), f"chose a sample more than once {where}"


def _check_weights(selection: Selection, candidates: Rows, known: Rows, where: str) -> None:
    weights = selection.weights
    strange = set(weights) - set(selection.samples) - set(known.samples)
    assert not strange, f"gave weight to {sorted(strange)}, neither chosen nor known, {where}"
    bad = [name for name, value in weights.items() if not (math.isfinite(value) and value >= 0)]
    assert not bad, f"weights of {bad} must be finite and not negative {where}"
    unseen = set(selection.clusters) - set(candidates.samples) - set(known.samples)
    assert not unseen, f"put {sorted(unseen)} in clusters, which were not there, {where}"


def _tensors(*several: Rows) -> list[Tensor]:
    return [tensor for rows in several for tensor in (rows.features, rows.logits, rows.weights)]
