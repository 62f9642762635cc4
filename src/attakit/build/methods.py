"""Methods, selectors and trainers from the tables of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from attakit.build.construct import check_settings, construct, find_named, settings_of
from attakit.build.models import draw_inputs
from attakit.errors import SettingError
from attakit.methods import METHODS
from attakit.methods.pool import PoolAdaptation
from attakit.nn.classifier import Classifier
from attakit.protocols import Asks, Method, NeedsSource, Selector
from attakit.select import SELECTORS
from attakit.settings.experiment import (
    DEFAULT_SELECTOR,
    DEFAULT_TRAINER,
    Experiment,
    MethodTable,
    PoolTable,
)
from attakit.stream.batches import Rounds
from attakit.stream.samples import Samples
from attakit.train import TRAINERS, Weighting

SOURCE_INPUTS = "source_inputs"


def build_method(
    table: MethodTable, model: nn.Module, seed: int, source: Samples | None = None
) -> Method:
    """Build a method by name, or by import path ("mylab.mymethod:MyMethod").

    A method that declares `NeedsSource` gets some of the samples the model was trained on, if
    there are any.
    """
    return _method(table.name, table.settings, model, seed, source)


def _method(
    name: Any, given: Mapping[str, Any], model: nn.Module, seed: int, source: Samples | None
) -> Method:
    kind = find_named(name, METHODS, "method")
    settings = _with_parts(given, seed)
    if "method" in settings:
        settings["method"] = _method(*_inner_table(settings["method"]), model, seed, source)
    wanted = 0 if source is None else _source_input_count(kind, settings)
    if wanted and source is not None:
        settings[SOURCE_INPUTS] = draw_inputs(source, seed, wanted)
    method: Method = construct(kind, settings, model, seed=seed)
    return method


def check_method_table(table: MethodTable) -> None:
    """Raise `SettingError` where a method cannot be, as far as that shows without a model."""
    _check_method(table.name, table.settings)


def _check_method(name: Any, given: Mapping[str, Any]) -> None:
    kind = find_named(name, METHODS, "method")
    settings = _with_parts(given, seed=0)
    if "method" in settings:
        _check_method(*_inner_table(settings["method"]))
    check_settings(kind, settings, [None])  # in the place of the model


def asks_for_labels(name: str) -> bool:
    """Whether a method, by name or import path, declares that it asks for labels.

    >>> asks_for_labels("simatta"), asks_for_labels("tent")
    (True, False)
    """
    kind = find_named(name, METHODS, "method")
    return isinstance(kind, type) and issubclass(kind, Asks)


def _with_parts(given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Settings of a method with those parts built that need no model."""
    settings = dict(given)
    if "selector" in settings:
        settings["selector"] = _selector(settings["selector"], seed)
    if "trainer" in settings:
        settings["trainer"] = _trainer(settings["trainer"], seed)
    return settings


def _source_input_count(kind: Callable[..., Any], settings: Mapping[str, Any]) -> int:
    """How many source inputs a method has a use for."""
    if SOURCE_INPUTS in settings or not (isinstance(kind, type) and issubclass(kind, NeedsSource)):
        return 0
    count = kind.source_input_count(settings)
    # Where a wrong setting makes it no count, the method itself complains about the setting.
    return count if isinstance(count, int) and count > 0 else 0


def build_pool_selector(given: str | Mapping[str, Any], seed: int) -> Selector:
    """A selector for rounds: where it has a pace, it is unlimited unless the table says more."""
    kind, settings = _selector_kind(given)
    paced = {name: "unlimited" for name in ("first", "per_step") if name in settings_of(kind)}
    selector: Selector = construct(kind, paced | settings, seed=seed)
    return selector


def build_pool(
    experiment: Experiment, table: PoolTable, stream: Rounds, model: Classifier
) -> PoolAdaptation:
    """The method of a pool run."""
    budget = experiment.labels.budget
    if budget == "unlimited":
        raise SettingError(
            "labels.budget: with a [pool] the budget must have a limit, because the rounds share "
            "it. Give a number of labels."
        )
    return PoolAdaptation(
        model,
        stream.pool,
        selector=build_pool_selector(table.selector, experiment.seed),
        budget=budget,
        forward_batch=experiment.stream.batch_size,
        seed=experiment.seed,
        **table.model_dump(exclude={"selector", "label"}),
    )


def check_pool(experiment: Experiment, table: PoolTable) -> None:
    """Raise `SettingError` if a pool run cannot work, as far as that shows without a model."""
    if experiment.method != MethodTable():
        raise SettingError(
            "An experiment has either a [method] for a stream or a [pool]: leave one of them out."
        )
    build_pool_selector(table.selector, experiment.seed)


def _inner_table(given: Any) -> tuple[Any, dict[str, Any]]:
    """Name and settings of the method that another one wraps, from its table or its name alone."""
    chosen = {"name": given} if isinstance(given, str) else given
    if not isinstance(chosen, Mapping) or "name" not in chosen:
        raise SettingError(
            f"method.method must be a name or a table with a name, got {given!r}. For example "
            f'[method.method] with name = "tent".'
        )
    settings = dict(chosen)
    return settings.pop("name"), settings


def _selector(given: Any, seed: int) -> Any:
    """A selector from its table, or from its name alone."""
    kind, settings = _selector_kind(given)
    return construct(kind, settings, seed=seed)


def _selector_kind(given: Any) -> tuple[Callable[..., Any], dict[str, Any]]:
    chosen = {"name": given} if isinstance(given, str) else given
    if not isinstance(chosen, Mapping):
        raise SettingError(f"method.selector must be a name or a table, got {given!r}.")
    settings = dict(chosen)
    return find_named(settings.pop("name", DEFAULT_SELECTOR), SELECTORS, "selector"), settings


def _trainer(given: Any, seed: int) -> Any:
    """A trainer from its table, or from its name alone."""
    chosen = {"name": given} if isinstance(given, str) else given
    if not isinstance(chosen, Mapping):
        raise SettingError(f"method.trainer must be a name or a table, got {given!r}.")
    settings = dict(chosen)
    kind = find_named(settings.pop("name", DEFAULT_TRAINER), TRAINERS, "trainer")
    if "weighting" in settings:
        settings["weighting"] = construct(Weighting, settings["weighting"])
    return construct(kind, settings, seed=seed)
