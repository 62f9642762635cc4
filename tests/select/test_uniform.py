from collections import Counter

import torch

from attakit.records import Rows
from attakit.select import Uniform


def rows(*names):
    count = len(names)
    return Rows(names, torch.zeros(count, 1), torch.zeros(count, 2), torch.ones(count))


def test_every_candidate_has_the_same_chance():
    chosen = Counter()

    for seed in range(600):
        chosen.update(Uniform(seed=seed).select(rows(*"abcdef"), rows(), 2, 0).samples)

    assert all(abs(chosen[name] - 200) < 4 * (200 * 2 / 3) ** 0.5 for name in "abcdef")


def test_every_choice_weighs_one():
    selection = Uniform().select(rows(*"abc"), rows(), limit=2, step=0)

    assert set(selection.weights.values()) == {1.0}
    assert set(selection.weights) == set(selection.samples)


def test_steps_draw_anew_and_a_seed_repeats_them():
    def draws(seed):
        selector = Uniform(seed=seed)
        return [selector.select(rows(*"abcdefgh"), rows(), 4, step).samples for step in range(3)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert len(set(draws(1))) == 3


def test_a_smaller_limit_takes_the_beginning_of_the_same_draw():
    whole = Uniform().select(rows(*"abcdefgh"), rows(), limit=5, step=0)
    part = Uniform().select(rows(*"abcdefgh"), rows(), limit=2, step=0)

    assert part.samples == whole.samples[:2]


def test_known_samples_are_left_out_and_names_are_asked_once():
    selection = Uniform().select(rows(*"aabbc"), rows("c"), limit=9, step=0)

    assert sorted(selection.samples) == ["a", "b"]


def test_no_limit_asks_about_all_and_none_is_none():
    limits = (99, 3, 0, -1)

    counts = [len(Uniform().select(rows(*"abcdef"), rows(), limit, 0).samples) for limit in limits]

    assert counts == [6, 3, 0, 0]
