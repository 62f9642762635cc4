"""A method inside another, from tables; and SimATTA's ablations, which are settings."""

import itertools

import pytest
import torch

from attakit.build.methods import build_method
from attakit.engine import run
from attakit.errors import SettingError
from attakit.label import Budget, KnownLabels, Ledger
from attakit.methods import METHODS, CoTTA, Enhanced, Tent
from attakit.select import Uniform
from attakit.settings.experiment import MethodTable
from attakit.testing import tiny_batch, tiny_classifier


def built(seed=0, **settings):
    return build_method(MethodTable(**settings), tiny_classifier(), seed)


def test_the_method_inside_is_a_table_of_its_own():
    method = built(name="enhanced", method={"name": "tent", "lr": 0.5}, keep=True)

    assert isinstance(method, Enhanced)
    assert isinstance(method.method, Tent)
    assert method.optimizer.param_groups[0]["lr"] == 0.5
    assert method.keep


@pytest.mark.parametrize("name", METHODS)
def test_the_method_inside_may_be_given_by_name_alone(name):
    assert type(built(name="enhanced", method=name).method) is METHODS[name]


def test_the_seed_reaches_every_part():
    method = built(seed=7, name="enhanced", method="cotta", selector={"name": "uniform"})

    assert isinstance(method.method, CoTTA)
    assert (method.seed, method.method.seed, method.selector.seed) == (7, 7, 7)
    assert isinstance(method.selector, Uniform)


def test_parts_of_the_method_inside_are_tables_too():
    inside = {"name": "simatta", "selector": "entropy", "trainer": {"lr": 0.5}}

    assert built(name="enhanced", method=inside).method.trainer.lr == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "tnet"}, r"Unknown method 'tnet'\. Did you mean 'tent'\?"),
        ({"method": {"name": "tent", "lrr": 1}}, r"Tent: unknown setting 'lrr'\. Did you mean"),
        ({"method": {"lr": 1}}, r"method\.method must be a name or a table with a name"),
        ({"method": 3}, r"method\.method must be a name or a table with a name, got 3"),
        ({"method": {"name": 3}}, "name of a method must be a text, got 3"),
        ({"method": {"name": "tent", "method": "tent"}}, "Tent: unknown setting 'method'"),
        ({"kep": True}, r"Enhanced: unknown setting 'kep'\. Did you mean 'keep'\?"),
        ({"keep": "yes"}, "Enhanced: keep must be true or false, got 'yes'"),
    ],
)
def test_a_wrong_table_is_named(settings, message):
    with pytest.raises(SettingError, match=message):
        built(name="enhanced", **settings)


CLUSTERING = {
    "IC=0": {"name": "entropy"},
    "IC=1": {"name": "incremental", "initial_clusters": 3, "cluster_growth": 1},
}
LOW_ENTROPY = {"LE=0": 0.0, "LE=1": 1.0}
STREAM = [tiny_batch(step, size=20) for step in range(4)]
LABELS = {sample: n % 3 for batch in STREAM for n, sample in enumerate(batch.samples)}


def adapted(clustering, low_entropy):
    """SimATTA after a tiny stream, and its ledger."""
    method = built(
        name="simatta",
        selector=CLUSTERING[clustering],
        low_entropy_bound=LOW_ENTROPY[low_entropy],
        high_entropy_bound=0.5,
        trainer={"max_updates": 5, "lr": 0.1},
    )
    ledger = Ledger(Budget(None))
    run(STREAM, method, KnownLabels(LABELS), ledger)
    return method, ledger


def test_the_four_ablations_of_simatta_run_and_differ():
    runs = {pair: adapted(*pair) for pair in itertools.product(CLUSTERING, LOW_ENTROPY)}

    for (_, low_entropy), (method, ledger) in runs.items():
        assert ledger.received > 0
        assert (len(method.low_entropy_anchors) > 0) == (low_entropy == "LE=1")
    inputs = tiny_batch(9).inputs
    answers = [method.predict(inputs).logits for method, _ in runs.values()]
    assert not any(torch.equal(*pair) for pair in itertools.combinations(answers, 2))
