"""The cells of a suite: its experiments and their state."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from attakit.bench.matching import match_labels
from attakit.bench.run_folder import DONE, changed_settings, has_begun, make_folder
from attakit.build.data import check_stream
from attakit.build.methods import asks_for_labels, check_method_table, check_pool
from attakit.errors import SettingError, StateError
from attakit.report.runs import INAPPLICABLE_FILE, read_run
from attakit.settings.experiment import Experiment
from attakit.settings.load import copy_tables, parse_experiment, put_value
from attakit.settings.suite import BudgetSetting, MethodEntry, StreamEntry, Suite

FAILED, SUITE_FILE = "failed.txt", "suite.json"

State = Literal["new", "interrupted", "finished", "inapplicable", "failed", "changed"]


@dataclass(frozen=True)
class Cell:
    """One run of a suite, with its place in the grid."""

    name: str  # unique in the suite; its folder below the suite's
    stream: str
    method: str
    budget: BudgetSetting | None  # None if budgets make no difference
    seed: int
    experiment: Experiment
    match: str | None = None  # the cell whose number of labels it gets; None when it has them

    @property
    def folder(self) -> Path:
        return self.experiment.report.folder

    @property
    def description(self) -> dict[str, Any]:
        """Its name and position in the grid, ready for JSON."""
        values = {name: value for name, value in asdict(self).items() if name != "experiment"}
        return {**values, "folder": str(self.folder)}


def expand(suite: Suite) -> tuple[Cell, ...]:
    """Return all cells of a suite, in the order of the file.

    Names and settings are checked as far as possible without data and models. So a wrong one is an
    error before anything runs.

    >>> from attakit.settings.suite import parse_suite
    >>> suite = parse_suite({"name": "small", "grid": {"budgets": [50, 100], "methods": [
    ...     {"label": "Tent", "method": {"name": "tent"}}, {"label": "SimATTA"}]}})
    >>> [cell.name for cell in expand(suite)]
    ['domain_after_domain/tent-0', 'domain_after_domain/50/simatta-0',
     'domain_after_domain/100/simatta-0']
    """
    cells = tuple(
        _cell(suite, stream, entry, budget, seed)
        for stream in suite.grid.streams
        for entry in suite.grid.methods
        if stream.runs(entry)
        for budget in _budgets(suite, entry)
        for seed in suite.grid.seeds_of(stream, entry)
    )
    twice = [name for name, times in Counter(cell.name for cell in cells).items() if times > 1]
    if twice:
        raise SettingError(
            f"Suite {suite.name}: two cells would share the folder {twice[0]}. Use different "
            "streams, methods, budgets and seeds, with labels that differ in their letters."
        )
    _check_methods(suite, cells)
    return cells


def _check_methods(suite: Suite, cells: Iterable[Cell]) -> None:
    """Raise `SettingError` if a method or pool cannot work; the same settings are checked once."""
    found = {_method_key(cell): cell for cell in cells}
    for cell in found.values():
        with _naming(f"{suite.name}: grid.methods: {cell.method!r}"):
            _check_parts(cell.experiment, is_matched=cell.match is not None)


def _method_key(cell: Cell) -> tuple[str, ...]:
    """What a check depends on: the method and whether it is matched, or all about a pool."""
    experiment = cell.experiment
    depends_on = experiment.method if experiment.pool is None else experiment
    return cell.method, depends_on.model_dump_json(), str(cell.match is None)


def cell_state(cell: Cell, model: str | None = None) -> State:
    """Return the state of a cell, judged by its folder.

    `model` is the fingerprint of the source model. A run that started from another one counts as
    changed.
    """
    failed = (cell.folder / FAILED).exists()
    if not has_begun(cell.folder):
        if (cell.folder / INAPPLICABLE_FILE).exists():
            return "inapplicable"
        return "failed" if failed else "new"
    if differences(cell, model):
        return "changed"
    if (cell.folder / DONE).exists():
        return "finished"
    return "failed" if failed else "interrupted"


def differences(cell: Cell, model: str | None = None) -> list[str]:
    """Return the settings in which the run in a cell's folder differs from the cell.

    If the fingerprint of the source model is known, it is compared instead of the file's path.
    """
    try:
        before = read_run(cell.folder).environment.get("model")
    except StateError:
        return ["damaged results"]
    changed = changed_settings(cell.experiment, cell.folder, ignored=("report", "threads"))
    if cell.match is not None:
        matched = ("method.selector", "labels.matched")
        changed = [name for name in changed if not name.startswith(matched)]
    if model is None:
        return changed
    changed = [name for name in changed if name != "model.weights"]
    return changed if before == model else [*changed, "source model"]


def write_suite(suite: Suite, cells: tuple[Cell, ...]) -> None:
    """Write the list of cells to the suite's folder, for tables."""
    make_folder(suite.results, "folder")
    about = suite.model_dump(
        mode="json", include={"name", "layout", "against", "paper", "protocol"}
    )
    text = json.dumps({**about, "cells": [cell.description for cell in cells]}, indent=1)
    (suite.results / SUITE_FILE).write_text(text + "\n", encoding="utf-8")


def _cell(
    suite: Suite, stream: StreamEntry, entry: MethodEntry, budget: BudgetSetting | None, seed: int
) -> Cell:
    tables = _tables(suite, stream, entry, budget, seed)
    order = tables.get("stream", {}).get("order") or Experiment().stream.order
    label = stream.label or str(order)
    name = _name(label, budget, entry.label, seed)
    put_value(tables, ["report", "folder"], str(suite.results / name), where=name)
    experiment = parse_experiment(tables, where=f"{suite.name}: {name}")
    with _naming(f"{suite.name}: stream {label!r}"):
        check_stream(experiment.stream)
    return Cell(
        name=name,
        stream=label,
        method=entry.label,
        budget=budget,
        seed=seed,
        experiment=experiment,
        match=None if entry.match is None else _name(label, budget, entry.match, seed),
    )


def _tables(
    suite: Suite, stream: StreamEntry, entry: MethodEntry, budget: BudgetSetting | None, seed: int
) -> dict[str, Any]:
    """Return the tables of one experiment; later entries of the file win."""
    tables = copy_tables(suite.base)
    tables["seed"] = seed
    if entry.method:
        tables["method"] = dict(entry.method)
    for name, value in stream.settings.items():
        put_value(tables, ["stream", name], value, where="grid.streams")
    for names, value in _flattened(stream.changes):
        put_value(tables, names, value, where="grid.streams: set")
    if budget is not None:
        put_value(tables, ["labels", "budget"], budget, where="grid.budgets")
    if entry.batch_size is not None and suite.protocol == "paper":
        put_value(tables, ["stream", "batch_size"], entry.batch_size, where=entry.label)
    for names, value in _flattened(entry.changes):
        put_value(tables, names, value, where=f"{entry.label}: set")
    labelled = "pool" if "pool" in tables else "method"
    put_value(tables, [labelled, "label"], entry.label, where=entry.label)
    return tables


def _flattened(tables: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[Any]:
    """Yield (names, value) pairs; names may be dotted in quotes or not."""
    for key, value in tables.items():
        names = (*before, *key.split("."))
        if isinstance(value, Mapping):
            yield from _flattened(value, names)
        else:
            yield names, value


def _budgets(suite: Suite, entry: MethodEntry) -> tuple[BudgetSetting | None, ...]:
    """Return the budgets that multiply a method; a matched one follows its partner."""
    if entry.match is not None:
        return _budgets(suite, suite.grid.entry(entry.match))
    table = entry.method or suite.base.get("method", {})
    pools = "pool" in suite.base or any(key.partition(".")[0] == "pool" for key in entry.changes)
    # Budgets matter only to methods that ask for labels.
    wanted = entry.budgets
    if wanted is None:
        with _naming(f"{suite.name}: grid.methods: {entry.label!r}"):
            wanted = pools or asks_for_labels(table.get("name", Experiment().method.name))
    return suite.grid.budgets if wanted and suite.grid.budgets else (None,)


def _name(stream: str, budget: BudgetSetting | None, method: str, seed: int) -> str:
    middle = "" if budget is None else f"{budget}/"
    return f"{_slug(stream)}/{middle}{_slug(method)}-{seed}"


def _slug(label: str) -> str:
    """Return a label as part of a path.

    >>> _slug("Tent (steps=1)")
    'tent-steps-1'
    """
    slug = re.sub(r"\W+", "-", label.lower()).strip("-")
    if not slug:
        raise SettingError(f"The label {label!r} has no letter or digit to name a folder by.")
    return slug


@contextmanager
def _naming(who: str) -> Iterator[None]:
    """Begin the message of a setting error with the place of the setting."""
    try:
        yield
    except SettingError as error:
        raise type(error)(f"{who}: {error}") from error


def _check_parts(experiment: Experiment, *, is_matched: bool) -> None:
    """Raise `SettingError` if the method or the pool of a cell cannot work."""
    if experiment.pool is not None:
        if is_matched:
            raise SettingError("a pool asks in rounds, so it cannot be matched. Leave out match.")
        check_pool(experiment, experiment.pool)
        return
    check_method_table(experiment.method)
    if is_matched:
        with _naming("match lets a method ask at random, so it must take a selector"):
            check_method_table(match_labels(experiment, 0).method)
