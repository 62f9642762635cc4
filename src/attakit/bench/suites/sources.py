"""The source models of a suite, prepared once before its cells run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from attakit.bench.run_folder import has_begun
from attakit.bench.suites.cells import Cell, State, cell_state, differences
from attakit.build.data import load_task
from attakit.build.imported import is_import_path
from attakit.build.models import TrainingCallback, source_classifier, weights_file
from attakit.errors import SettingError, StreamError
from attakit.nn.named import check_model_name
from attakit.nn.weights import weights_hash
from attakit.settings.experiment import Experiment

# Only these settings of [stream] can affect the source model.
_STREAM_KEYS = {"name", "root", "source", "size", "held_out", "table", "text"}


@dataclass(frozen=True)
class SourceModel:
    """A trained source model: its file, and its fingerprint."""

    file: Path
    fingerprint: str


Source = SourceModel | StreamError  # the error says why there is none: data is missing


def prepare_sources(
    cells: Iterable[Cell], progress: TrainingCallback | None = None
) -> dict[str, Source]:
    """Return the source model of each cell by its name; cells share models.

    The digits model is trained if it is not cached. Others must exist. If the data of a stream is
    missing, only its cells have no source.
    """
    known: dict[str, Source] = {}
    found: dict[str, Source] = {}
    for cell in cells:
        key = _key(cell.experiment)
        if key not in known:
            known[key] = _prepare(cell.experiment, progress)
        found[cell.name] = known[key]
    return found


def states(cells: Iterable[Cell]) -> dict[str, State]:
    """Return the state of each cell by its name, and train nothing.

    A source model is only read if a run started from a file at another path.
    """
    cells = tuple(cells)
    sources = prepare_sources(filter(_has_moved_weights, cells))
    return {cell.name: cell_state(cell, _fingerprint(sources.get(cell.name))) for cell in cells}


def _has_moved_weights(cell: Cell) -> bool:
    file = cell.experiment.model.weights
    is_there = file is not None and file.exists() and has_begun(cell.folder)
    return is_there and differences(cell) == ["model.weights"]


def _fingerprint(source: Source | None) -> str | None:
    return source.fingerprint if isinstance(source, SourceModel) else None


def _prepare(experiment: Experiment, progress: TrainingCallback | None) -> Source:
    try:
        task = load_task(experiment.stream)
    except StreamError as error:
        return error
    _check_weights(experiment)
    model = source_classifier(experiment, task, progress)
    return SourceModel(weights_file(experiment, task), weights_hash(model))


def _check_weights(experiment: Experiment) -> None:
    file = experiment.model.weights
    if file is not None and not file.exists():
        if not is_import_path(experiment.model.name):
            check_model_name(experiment.model.name)
        raise SettingError(
            f"base.model.weights: there is no file {file}. Train the source model with `attakit "
            f"pretrain EXPERIMENT.toml --set training.weights={file}`, where the experiment has "
            f"the [stream] and [model] of this suite."
        )


def _key(experiment: Experiment) -> str:
    stream = experiment.stream.model_dump_json(include=_STREAM_KEYS)
    return stream + experiment.model.model_dump_json()
