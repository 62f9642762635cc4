"""The adapted model of a run, kept in its folder with what one must know to use it."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.bench.run_folder import MODEL_FILE
from attakit.build.exportable import describe_model
from attakit.build.task import Task
from attakit.errors import SettingError
from attakit.nn.export import export_model
from attakit.protocols import Method, ShowsModel
from attakit.settings.experiment import Experiment


def adapted_model(method: Method) -> nn.Module:
    """The copy of the model that a method adapts, if the method declares `ShowsModel`."""
    if not isinstance(method, ShowsModel):
        raise SettingError(
            f"The method {type(method).__name__} does not show its model, so it can be neither "
            f"kept nor exported. Give it a property adapted_model, or leave out report.model."
        )
    return method.adapted_model


def keep_model(experiment: Experiment, task: Task, method: Method, folder: Path) -> None:
    """Write the adapted model into the folder of a run, if the experiment wants it."""
    if experiment.report.model:
        origin = f"{experiment.label} on {experiment.stream.name}, seed {experiment.seed}"
        facts = describe_model(experiment, task, origin)
        export_model(adapted_model(method), folder / MODEL_FILE, facts, replace_file=True)
