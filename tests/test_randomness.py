"""Random choices depend on (seed, purpose, step) and on nothing else."""

import random
from itertools import product

import numpy as np

from attakit.randomness import derived_seed, generator


def test_each_seed_purpose_and_step_has_its_own_stream() -> None:
    places = list(product((0, 1), ("select", "order"), (0, 1, "a", "b")))

    assert len({derived_seed(*place) for place in places}) == len(places)
    assert all(0 <= derived_seed(*place) < 2**32 for place in places)


def test_derived_seed_is_the_same_on_every_machine() -> None:
    assert derived_seed(0, "select", 0) == 3044287598


def test_generator_starts_anew_at_each_call() -> None:
    generator(3, "noise", "a").random(10)

    assert generator(3, "noise", "a").random() == generator(3, "noise", "a").random()


def test_global_random_state_is_untouched() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()

    generator(3, "noise").random(10)

    assert (random.getstate(), np.random.get_state()[1].tolist()) == before
