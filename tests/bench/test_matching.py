import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.bench.load import parse_experiment
from attakit.bench.matching import even_counts, match_labels


@given(st.integers(0, 500), st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_all_labels_are_given_out_and_no_batch_is_far_from_its_share(labels, sizes):
    counts = even_counts(labels, sizes)

    assert sum(counts) == labels
    for count, size in zip(counts, sizes, strict=True):
        assert abs(count - labels * size / sum(sizes)) < 1


def test_a_smaller_last_batch_gets_fewer():
    assert even_counts(10, [8, 8, 4]) == [4, 4, 2]


@pytest.mark.parametrize(
    "selector", [None, "uniform", {"name": "uniform"}, {"name": "uniform", "first": 3}]
)
def test_a_matched_experiment_asks_for_that_many(quick_digits, selector):
    method = {"name": "simatta"} | ({} if selector is None else {"selector": selector})
    tables = {"stream": {"targets": ["outline"], "share": 0.05, "batch_size": 15}, "method": method}

    matched = match_labels(parse_experiment(tables), 7)

    assert matched.method.settings["selector"]["counts"] == even_counts(7, [15, 15, 10])
    assert matched.method.settings["selector"]["name"] == "uniform"
