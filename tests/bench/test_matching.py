import pytest

from attakit.bench.matching import match_labels
from attakit.bench.run import run_experiment
from attakit.build.methods import build_method, build_rate
from attakit.select import Uniform
from attakit.testing import tiny_classifier

METHODS = {
    "enhanced": {"name": "enhanced", "method": {"name": "tent"}},
    "a selector given by name": {"name": "simatta", "selector": "incremental"},
    "a selector with settings": {"name": "simatta", "selector": {"cluster_growth": 3}},
}


@pytest.mark.parametrize("name", METHODS)
def test_a_matched_experiment_asks_at_random_and_evenly(small_run, name):
    experiment = small_run(labels={"budget": 20, "per_1000": 90.0})
    tables = {**experiment.model_dump(mode="json", exclude_unset=True), "method": METHODS[name]}
    experiment = type(experiment).model_validate(tables)

    matched = match_labels(experiment, 11)

    rate = build_rate(matched.labels)
    assert isinstance(build_method(matched.method, tiny_classifier(), 0).selector, Uniform)
    assert matched.labels.limit == 11
    assert (rate.per_1000, rate.spread_over, rate.first, rate.at_drift) == (None, None, 0, 0)
    changed = {"method": experiment.method, "labels": experiment.labels}
    assert matched.model_copy(update=changed) == experiment


def test_a_matched_run_uses_exactly_so_many_labels(small_run):
    experiment = small_run(method={"name": "enhanced", "method": "tent", "keep": True})
    tables = experiment.model_dump(mode="json", exclude_unset=True)
    for name in ("selector", "trainer"):
        tables["method"].pop(name, None)

    end = run_experiment(match_labels(type(experiment).model_validate(tables), 11))

    assert end["labels"] == 11
