"""Models that `attakit export` can write: of runs, finished or stopped, and of experiments."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.bench.pool_run import saved_learner
from attakit.bench.run import saved_method
from attakit.bench.run_folder import DONE, MODEL_FILE, SNAPSHOT
from attakit.bench.saved_model import adapted_model, describe_model
from attakit.build.data import load_task
from attakit.build.models import source_classifier, untrained_model
from attakit.errors import StateError
from attakit.nn.export import ModelFacts, read_facts
from attakit.nn.weights import load_weights
from attakit.report.runs import read_run
from attakit.settings.experiment import Experiment
from attakit.settings.load import parse_experiment

Exportable = tuple[nn.Module, ModelFacts]


def run_model(folder: Path) -> Exportable:
    """The adapted model of a run: of a finished one as it was kept, of a stopped one as saved."""
    if (folder / MODEL_FILE).exists():
        return kept_model(folder / MODEL_FILE)
    if (folder / SNAPSHOT).exists():
        return _saved_model(folder)
    if (folder / DONE).exists():
        raise StateError(
            f"The run in {folder} is finished and kept no model. Run it again with "
            f"--replace --set report.model=true."
        )
    raise StateError(
        f"The run in {folder} has not saved a model yet. Wait until it has (report.save_every), "
        f"or continue it with --resume."
    )


def source_model(experiment: Experiment) -> Exportable:
    """The source model of an experiment, before any adaptation."""
    task = load_task(experiment.stream)
    model: nn.Module = source_classifier(experiment, task).model
    return model, describe_model(experiment, task, f"source model for {experiment.stream.name}")


def kept_model(file: Path) -> Exportable:
    """A model from a file of weights that has its facts in it."""
    facts = read_facts(file)
    if facts is None:
        raise StateError(
            f"{file} holds weights, but not what model they are of. Only files that attakit kept "
            f"or exported can be exported again."
        )
    model = untrained_model(facts.model, len(facts.classes), facts.shape, facts.image_size)
    load_weights(model, file)
    return model.eval(), facts


def _saved_model(folder: Path) -> Exportable:
    run = read_run(folder)
    settings = {name: value for name, value in run.experiment.items() if name != "label"}
    experiment = parse_experiment(settings)
    find = saved_method if experiment.pool is None else saved_learner
    method, task = find(experiment, folder)
    origin = f"{run.label} on {experiment.stream.name}, seed {experiment.seed}, not finished"
    return adapted_model(method), describe_model(experiment, task, origin)
