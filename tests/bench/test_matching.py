import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.bench.matching import even_counts, match_labels
from attakit.bench.run import run_experiment
from attakit.build.data import build_stream, load_task
from attakit.build.methods import build_method
from attakit.errors import SettingError
from attakit.testing import tiny_classifier


@given(st.lists(st.integers(0, 50), max_size=30), st.floats(0, 1))
def test_counts_add_up_and_fit_into_their_batches(sizes, share):
    labels = int(share * sum(sizes))

    counts = even_counts(labels, sizes)

    assert sum(counts) == labels
    assert all(0 <= count <= size for count, size in zip(counts, sizes, strict=True))


def test_counts_are_spread_evenly():
    assert even_counts(6, [10] * 12) == [0, 1] * 6
    assert even_counts(3, [10, 20, 30, 30]) == [0, 1, 1, 1]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (21, "labels must be at most the number of samples, 20, got 21"),
        (-1, "labels must be at least 0, got -1"),
        (2.5, r"labels must be a whole number, got 2\.5"),
    ],
)
def test_impossible_counts_are_refused(labels, message):
    with pytest.raises(SettingError, match=f"even_counts: {message}"):
        even_counts(labels, [10, 10])


METHODS = {
    "enhanced": {"name": "enhanced", "method": {"name": "tent"}},
    "a selector given by name": {"name": "simatta", "selector": "incremental"},
    "a selector with settings": {"name": "simatta", "selector": {"initial_clusters": 3}},
}


@pytest.mark.parametrize("name", METHODS)
def test_a_matched_experiment_asks_at_random_as_often_as_it_should(small_run, name):
    experiment = small_run()
    tables = {**experiment.model_dump(mode="json", exclude_unset=True), "method": METHODS[name]}
    experiment = type(experiment).model_validate(tables)

    matched = match_labels(experiment, 11)

    steps = len(build_stream(experiment, load_task(experiment.stream)))
    selector = build_method(matched.method, tiny_classifier(), 0).selector
    assert (sum(selector.counts), len(selector.counts)) == (11, steps)
    assert matched.model_copy(update={"method": experiment.method}) == experiment


def test_a_matched_run_uses_exactly_so_many_labels(small_run):
    experiment = small_run(method={"name": "enhanced", "method": "tent", "keep": True})
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    for name in ("selector", "trainer"):
        tables["method"].pop(name, None)

    end = run_experiment(match_labels(type(experiment).model_validate(tables), 11))

    assert end["labels"] == 11
