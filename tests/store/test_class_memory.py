import math
from collections import Counter

import pytest
import torch

from attakit.errors import SettingError
from attakit.store.class_memory import BalancedReservoir, Kept, TimelyMemory


def kept(name, label, entropy=0.0):
    return Kept(name, torch.tensor([float(label)]), label, entropy)


def names(memory):
    return "".join(each.sample for each in memory.kept)


def labels(memory):
    return Counter(each.label for each in memory.kept)


def test_a_full_class_gives_up_its_worst_sample_for_a_better_one():
    # Two places for each of two classes. Entropy decides: ages are all but equal.
    memory = TimelyMemory(4, time_weight=0.0)
    for name, entropy in (("a", 0.5), ("b", 0.3), ("c", 0.4), ("d", 0.6)):
        memory.add(kept(name, 0, entropy), classes=2)

    assert names(memory) == "bc"


def test_a_class_with_room_takes_a_place_from_the_largest_class():
    # Three classes share four places: 4/3 each, so class 0 may have two.
    memory = TimelyMemory(4, time_weight=0.0)
    for name, label, entropy in (("a", 0, 0.5), ("b", 0, 0.9), ("c", 1, 0.9), ("d", 1, 0.8)):
        memory.add(kept(name, label, entropy), classes=3)
    memory.add(kept("e", 2, 0.1), classes=3)

    # The largest classes are 0 and 1 with two each; b and c are equally unsure, the later class
    # gives way.
    assert names(memory) == "abde"


def test_an_old_sample_gives_way_to_a_new_one_that_is_less_sure():
    # One place. Score of the old one: 1/(1 + e^(-age)) + 0; of the new one: 1/2 + H/ln 2.
    # After two samples the age is 2: 0.881 > 0.5 + H/ln 2 as long as H < 0.381·ln 2 = 0.264.
    for entropy, stays in ((0.26, False), (0.27, True)):
        memory = TimelyMemory(1)
        memory.add(kept("a", 0), classes=2)
        memory.add(kept("b", 0, 1.0), classes=2)
        memory.add(kept("c", 0, entropy), classes=2)
        assert (names(memory) == "a") == stays
    assert 1 / (1 + math.exp(-2)) - 0.5 == pytest.approx(0.381, abs=1e-3)


def test_ages_count_the_samples_that_came_since_and_the_sample_itself():
    memory = TimelyMemory(4)
    for name, label in (("a", 1), ("b", 0), ("c", 0)):
        memory.add(kept(name, label), classes=2)

    assert memory.ages.tolist() == [2, 1, 3]  # class by class
    assert memory.inputs.flatten().tolist() == [0, 0, 1]


def test_a_run_of_one_class_does_not_push_out_the_others():
    memory = BalancedReservoir(6)
    for number, label in enumerate([0, 0, 1, 1, 2, 2] + [0] * 100):
        memory.add(kept(str(number), label))

    assert labels(memory) == {0: 2, 1: 2, 2: 2}


def test_a_new_class_takes_places_of_the_largest_until_all_are_alike():
    memory = BalancedReservoir(4)
    for number, label in enumerate([0] * 10 + [1] * 10):
        memory.add(kept(str(number), label))

    assert labels(memory) == {0: 2, 1: 2}


def test_within_a_class_every_sample_has_the_same_chance():
    # Of 10 samples of one class 4 are kept, so each with a chance of 0.4.
    counts = Counter()
    for seed in range(500):
        memory = BalancedReservoir(4, seed=seed)
        for number in range(10):
            memory.add(kept(str(number), 0))
        counts.update(each.sample for each in memory.kept)

    # The standard deviation is √(500 · 0.4 · 0.6) = 11.
    assert all(abs(counts[str(number)] - 200) < 44 for number in range(10))


@pytest.mark.parametrize("made", [lambda: TimelyMemory(3), lambda: BalancedReservoir(3)])
def test_forgotten_samples_are_gone_and_the_state_says_it_all(made):
    memory, again = made(), made()
    rest = {"classes": 2} if isinstance(memory, TimelyMemory) else {}
    for number in range(5):
        memory.add(kept(str(number), number % 2, 0.1 * number), **rest)
    memory.forget([memory.kept[0].sample, "unknown"])
    assert len(memory) == 2

    again.load_state_dict(memory.state_dict())
    for one in (memory, again):
        for number in range(5, 20):
            one.add(kept(str(number), number % 2, 0.1), **rest)

    assert names(memory) == names(again)


def test_a_memory_needs_room():
    with pytest.raises(SettingError, match="BalancedReservoir: capacity must be at least 1, got 0"):
        BalancedReservoir(0)
