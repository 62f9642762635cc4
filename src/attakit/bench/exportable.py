"""Models of runs, finished or stopped, that `attakit export` can write."""

from __future__ import annotations

from pathlib import Path

from attakit.bench.run import saved_method
from attakit.bench.run_folder import DONE, MODEL_FILE, has_snapshot
from attakit.build.exportable import (
    Exportable,
    adapted_model,
    describe_model,
    model_from_file,
)
from attakit.errors import StateError
from attakit.report.runs import read_run
from attakit.settings.load import parse_experiment


def run_model(folder: Path) -> Exportable:
    """Return the adapted model of a run: the final one, or the last saved one of a stopped run."""
    if (folder / MODEL_FILE).exists():
        return model_from_file(folder / MODEL_FILE)
    if has_snapshot(folder):
        return _saved_model(folder)
    if (folder / DONE).exists():
        raise StateError(
            f"The run in {folder} is finished and did not keep its model. Run it again with "
            "--replace --set report.model=true."
        )
    raise StateError(
        f"The run in {folder} has not saved a model yet. Wait until it has (report.save_every), "
        f"or continue it with --resume."
    )


def _saved_model(folder: Path) -> Exportable:
    run = read_run(folder)
    settings = {name: value for name, value in run.experiment.items() if name != "label"}
    experiment = parse_experiment(settings)
    method, task = saved_method(experiment, folder)
    origin = f"{run.label} on {experiment.stream.name}, seed {experiment.seed}, not finished"
    return adapted_model(method), describe_model(experiment, task, origin)
