"""From experiment tables to objects."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from torch import nn

from attakit.bench.experiment import Experiment, LabelsTable, MethodTable
from attakit.errors import SettingError, unknown_name
from attakit.label.budget import Budget
from attakit.label.known import KnownLabels
from attakit.label.ledger import Ledger
from attakit.label.terminal import Terminal
from attakit.label.wrappers import Delayed, Expiring, Noisy, Skipping
from attakit.methods import METHODS
from attakit.protocols import Method, Oracle
from attakit.select import SELECTORS
from attakit.stream.truth import Truth
from attakit.train.balanced import BalancedTrainer
from attakit.train.weighting import Weighting


def build_method(table: MethodTable, model: nn.Module, seed: int) -> Method:
    """Build a method by name, or by import path ("mylab.mymethod:MyMethod")."""
    kind = _named(table.name, METHODS, "method")
    settings = dict(table.settings)
    if isinstance(settings.get("selector"), Mapping):
        chosen = dict(settings["selector"])
        selector = _named(chosen.pop("name", "incremental"), SELECTORS, "selector")
        settings["selector"] = construct(selector, chosen, seed=seed)
    if isinstance(settings.get("trainer"), Mapping):
        chosen = dict(settings["trainer"])
        if "weighting" in chosen:
            chosen["weighting"] = construct(Weighting, chosen["weighting"])
        settings["trainer"] = construct(BalancedTrainer, chosen, seed=seed)
    method: Method = construct(kind, settings, model, seed=seed)
    return method


def build_oracle(
    table: LabelsTable, truth: Truth, seed: int, write: Callable[[str], None] | None = None
) -> Oracle:
    """Build the oracle that the [labels] table describes, wrapped as it says."""
    oracle: Oracle
    if table.oracle == "ask":
        oracle = Terminal(truth.classes, write=write) if write else Terminal(truth.classes)
    else:
        oracle = KnownLabels(truth.labels)
    if table.noise:
        oracle = Noisy(oracle, rate=table.noise, classes=len(truth.classes), seed=seed)
    if table.skips:
        oracle = Skipping(oracle, rate=table.skips, seed=seed)
    if table.delay or table.jitter:
        oracle = Delayed(oracle, rounds=table.delay, jitter=table.jitter, seed=seed)
    if table.expiry:
        oracle = Expiring(oracle, rounds=table.expiry)
    return oracle


def build_ledger(experiment: Experiment) -> Ledger:
    """Build the ledger with the experiment's budget."""
    budget = experiment.labels.budget
    return Ledger(Budget(None if budget == "unlimited" else budget))


def construct(
    kind: Callable[..., Any], settings: Any, *arguments: Any, seed: int | None = None
) -> Any:
    """Call a class with settings from a file; unknown names are errors that name the nearest."""
    who = getattr(kind, "__name__", str(kind))
    if not isinstance(settings, Mapping):
        raise SettingError(f"{who}: settings must be a table, got {settings!r}.")
    parameters = inspect.signature(kind).parameters
    known = [name for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY]
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise SettingError(
                f"{who}: unknown setting {name!r}.{hint} Known: {', '.join(known) or 'none'}."
            )
    if seed is not None and "seed" in known:
        settings = {"seed": seed, **settings}
    return kind(*arguments, **settings)


def _named(name: str, table: Mapping[str, Callable[..., Any]], kind: str) -> Callable[..., Any]:
    if name in table:
        return table[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise unknown_name(kind, name, table)
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise SettingError(
            f"The {kind} {name!r} cannot be imported: {error}. The form is package.module:Class."
        ) from error
    return found
