from itertools import islice

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from attakit.train.draws import draw_batches


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 5))
def test_shuffled_draws_show_all_positions_before_any_comes_again(count, size, rounds):
    batches = draw_batches(count, size, np.random.default_rng(0))
    width = min(size, count)
    drawn = np.concatenate(list(islice(batches, rounds * count)))

    assert len(drawn) == rounds * count * width
    for start in range(0, len(drawn) - count + 1, count):
        assert sorted(drawn[start : start + count]) == list(range(count))
