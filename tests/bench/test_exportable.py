import pytest
import torch

from attakit.bench.exportable import run_model
from attakit.bench.run import run_experiment
from attakit.bench.run_folder import SNAPSHOT
from attakit.build.exportable import exportable_source
from attakit.errors import SettingError, StateError
from attakit.methods import SourceOnly
from attakit.nn import weights_hash
from attakit.settings.experiment import MethodTable
from attakit.store.tensor_file import load_state
from interruptions import crash, stopped

KEEP = {"model": True}


def with_method(experiment, **settings):
    return experiment.model_copy(update={"method": MethodTable(**settings)})


def break_off(experiment):
    """Run an experiment until it has been saved once."""
    stopped(experiment, 4, crash)
    return experiment.report.folder


def test_a_stopped_pool_run_gives_the_model_of_its_last_round(small_run):
    folder = break_off(with_method(small_run(pool={"rounds": 6, "updates": 1})))

    model, facts = run_model(folder)

    state = load_state(folder / SNAPSHOT)["method"]
    saved = state["model"]
    assert torch.equal(model.head.weight, saved["model.head.weight"])
    assert facts.origin == "pool, uniform on digits, seed 0, not finished"


def test_a_finished_run_keeps_its_model_if_told(small_run):
    experiment = small_run(report=KEEP)
    run_experiment(experiment)

    model, facts = run_model(experiment.report.folder)

    source, _ = exportable_source(experiment)
    assert weights_hash(model) == facts.weights != weights_hash(source)
    assert facts.classes == tuple("0123456789")
    assert (facts.shape, facts.mean, facts.std) == ((1, 28, 28), (0.1307,), (0.3081,))
    assert facts.origin == "simatta on digits, seed 0"
    assert facts.norm == "stored"
    assert model(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_a_finished_run_without_a_model_says_how_to_get_one(small_run):
    experiment = with_method(small_run(), name="source_only")
    run_experiment(experiment)

    with pytest.raises(StateError, match=r"--replace --set report\.model=true"):
        run_model(experiment.report.folder)


def test_a_pool_run_keeps_its_model_if_told(small_run):
    experiment = with_method(small_run(report=KEEP, pool={"rounds": 1, "updates": 2}))
    run_experiment(experiment)

    model, facts = run_model(experiment.report.folder)

    assert weights_hash(model) == facts.weights != weights_hash(exportable_source(experiment)[0])


def test_a_stopped_run_gives_the_model_that_was_saved_last(small_run):
    folder = break_off(small_run())
    assert (folder / SNAPSHOT).exists()

    model, facts = run_model(folder)

    saved = load_state(folder / SNAPSHOT)["method"]["model"]
    assert torch.equal(model.head.weight, saved["model.head.weight"])
    assert facts.origin.endswith("not finished")


def test_a_run_that_saved_nothing_yet_says_so(small_run):
    folder = break_off(small_run(report={"save_every": 0}))

    with pytest.raises(StateError, match="has not saved a model yet"):
        run_model(folder)


def test_a_model_that_goes_by_batch_statistics_is_marked(small_run):
    experiment = with_method(small_run(report=KEEP), name="tent")
    run_experiment(experiment)

    assert run_model(experiment.report.folder)[1].norm == "batch"


class Hidden:
    """A method that shows nothing of its model."""

    def __init__(self, model):
        self.inside = SourceOnly(model)

    def __getattr__(self, name):
        if name == "adapted_model":
            raise AttributeError(name)
        return getattr(self.inside, name)


def test_a_method_that_hides_its_model_is_told_before_the_run(small_run, monkeypatch):
    monkeypatch.setattr("attakit.bench.run.build_method", lambda _table, model, *_: Hidden(model))

    with pytest.raises(SettingError, match="Hidden does not show its model"):
        run_experiment(small_run(report=KEEP))
