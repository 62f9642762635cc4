from collections import Counter

import pytest
import torch

from attakit.errors import SettingError
from attakit.records import Rows
from attakit.select import Uniform


def rows(*names):
    count = len(names)
    return Rows(names, torch.zeros(count, 1), torch.zeros(count, 2), torch.ones(count))


def test_every_candidate_has_the_same_chance():
    chosen = Counter()

    for seed in range(600):
        chosen.update(Uniform(first=2, seed=seed).select(rows(*"abcdef"), rows(), 10, 0).samples)

    assert all(abs(chosen[name] - 200) < 4 * (200 * 2 / 3) ** 0.5 for name in "abcdef")


def test_every_choice_weighs_one():
    selection = Uniform(first=2).select(rows(*"abc"), rows(), limit=10, step=0)

    assert set(selection.weights.values()) == {1.0}
    assert set(selection.weights) == set(selection.samples)


def test_steps_draw_anew_and_a_seed_repeats_them():
    def draws(seed):
        selector = Uniform(first=4, per_step=4, seed=seed)
        return [selector.select(rows(*"abcdefgh"), rows(), 10, step).samples for step in range(3)]

    assert draws(1) == draws(1)
    assert draws(1) != draws(2)
    assert len(set(draws(1))) == 3


def test_a_smaller_limit_takes_the_beginning_of_the_same_draw():
    whole = Uniform(first=5).select(rows(*"abcdefgh"), rows(), limit=5, step=0)
    part = Uniform(first=5).select(rows(*"abcdefgh"), rows(), limit=2, step=0)

    assert part.samples == whole.samples[:2]


def test_known_samples_are_left_out_and_names_are_asked_once():
    selection = Uniform(first=9).select(rows(*"aabbc"), rows("c"), limit=10, step=0)

    assert sorted(selection.samples) == ["a", "b"]


def test_counts_say_how_many_to_take_at_each_step():
    selector = Uniform(counts=[3, 0, 2])

    counts = [len(selector.select(rows(*"abcdef"), rows(), 10, step).samples) for step in range(5)]

    assert counts == [3, 0, 2, 0, 0]


def test_without_counts_the_pace_decides():
    selector = Uniform(first=3, per_step=0.5)

    counts = [len(selector.select(rows(*"abcdef"), rows(), 10, step).samples) for step in range(5)]

    assert counts == [3, 1, 0, 1, 0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"first": -1}, "Uniform: first must be at least 0, got -1"),
        ({"per_step": -1}, "Uniform: per_step must be at least 0, got -1"),
        ({"counts": [1, -2]}, "Uniform: every one of counts must be at least 0, got -2"),
        ({"counts": [1.5]}, "Uniform: every one of counts must be a whole number, got 1.5"),
    ],
)
def test_wrong_settings_are_refused(wrong, message):
    with pytest.raises(SettingError, match=message):
        Uniform(**wrong)
