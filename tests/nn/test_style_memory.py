"""Which samples of a stream are remembered."""

import numpy as np
import pytest

from attakit.nn.style_memory import lasting_places, latest_places

WINDOW = 30


def remembered(sizes, places):
    """Numbers of the samples in the memory, after batches of these sizes."""
    memory, seen = [], 0
    for size in sizes:
        everyone = [*memory, *range(seen, seen + size)]
        memory = [everyone[place] for place in places(len(memory), size, seen)]
        seen += size
    return memory


def lasting(known, new, seen):
    return lasting_places(known, new, WINDOW, seen)


def test_the_latest_are_the_last_of_the_stream():
    found = remembered([7] * 20, lambda known, new, _seen: latest_places(known, new, WINDOW))
    assert found == list(range(110, 140))


@pytest.mark.parametrize("size", [1, 7, 30, 100])
def test_a_third_of_a_lasting_memory_is_the_latest(size):
    count = 210 // size * size
    found = remembered([size] * (210 // size), lasting)
    assert found[-10:] == list(range(count - 10, count))
    assert len(set(found)) == WINDOW


def test_the_rest_is_a_fair_draw_from_all_before():
    drawn = remembered([9] * 400, lasting)[:20]
    assert np.mean(drawn) == pytest.approx(1800, abs=3 * 3600 / 12**0.5 / 20**0.5)


def test_what_fits_is_kept_in_order():
    assert remembered([10, 10, 10], lasting) == list(range(30))
