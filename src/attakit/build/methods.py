"""Methods, selectors and trainers from the tables of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from attakit.build.construct import check_settings, construct, find_named, settings_of
from attakit.build.models import drawn_positions
from attakit.errors import ModelError, SettingError
from attakit.methods import METHODS, AskingMethod
from attakit.methods.pool import PoolAdaptation
from attakit.nn.classifier import Classifier
from attakit.nn.small import SmallCNN
from attakit.protocols import Asks, Method, NeedsSource, Selector
from attakit.queries import QuestionKind
from attakit.select import SELECTORS, LabelRate
from attakit.settings.experiment import (
    DEFAULT_SELECTOR,
    DEFAULT_TRAINER,
    Experiment,
    LabelsTable,
    MethodTable,
    PoolTable,
)
from attakit.stream.batches import Rounds
from attakit.stream.samples import ArraySamples, Samples
from attakit.train import TRAINERS, Weighting

SOURCE_INPUTS, SOURCE_LABELS = "source_inputs", "source_labels"
# Used instead of the source if only settings are checked.
_NO_SOURCE = ArraySamples(torch.zeros(2, 1, 8, 8), [0, 1])
_PACE = "Set the pace in [labels]: per_1000 or spread_over, first and at_drift."


def build_method(
    table: MethodTable,
    model: nn.Module,
    seed: int,
    source: Samples | None = None,
    rate: LabelRate | None = None,
    question: QuestionKind | None = None,
) -> Method:
    """Build a method by name, or by import path ("mylab.mymethod:MyMethod").

    A method that declares `NeedsSource` gets some of the training samples of the model, if there
    are any. One that asks for labels gets the rate and the kind of question, if given. With the
    default rate, a method that sets its own pace keeps it.
    """
    method = _method(table.name, table.settings, model, seed, source)
    if isinstance(method, AskingMethod):
        method.rate = method.rate if rate is None or rate.is_usual else rate
        method.question = method.question if question is None else question
    return method


def build_rate(table: LabelsTable) -> LabelRate:
    """Build the label rate of the [labels] table; an even one for a matched run."""
    extra = table.matched is None
    return LabelRate(
        per_1000=table.per_1000 if extra else None,
        spread_over=table.spread_over if extra else None,
        first=table.first if extra else 0,
        at_drift=table.at_drift if extra else 0,
    )


def _method(
    name: Any, given: Mapping[str, Any], model: nn.Module, seed: int, source: Samples | None
) -> Method:
    kind = find_named(name, METHODS, "method")
    settings = _with_parts(given, seed)
    if "method" in settings:
        settings["method"] = _method(
            *_name_and_settings(settings["method"], "method"), model, seed, source
        )
    wanted = 0 if source is None else _source_input_count(kind, settings)
    if wanted and source is not None:
        positions = drawn_positions(source, seed, wanted)
        settings[SOURCE_INPUTS] = source.load(positions)
        if SOURCE_LABELS in settings_of(kind):
            settings[SOURCE_LABELS] = torch.tensor([source.labels[at] for at in positions])
    method: Method = construct(kind, settings, model, seed=seed)
    return method


def check_method_table(table: MethodTable) -> None:
    """Raise `SettingError` if a method cannot work, as far as this is known without the model."""
    _check_method(table.name, table.settings)
    if table.name in METHODS:
        # The method checks its values itself. A user's own method is created only once.
        with suppress(ModelError):  # what does not fit this model may fit the real one
            _method(table.name, table.settings, SmallCNN(width=1, hidden=2), 0, _NO_SOURCE)


def _check_method(name: Any, given: Mapping[str, Any]) -> None:
    kind = find_named(name, METHODS, "method")
    settings = _with_parts(given, seed=0)
    if "method" in settings:
        _check_method(*_name_and_settings(settings["method"], "method"))
    check_settings(kind, settings, [None])  # None replaces the model


def asks_for_labels(name: str) -> bool:
    """True if a method, by name or import path, declares that it asks for labels.

    >>> asks_for_labels("simatta"), asks_for_labels("tent")
    (True, False)
    """
    kind = find_named(name, METHODS, "method")
    return isinstance(kind, type) and issubclass(kind, Asks)


def _with_parts(given: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return the settings of a method, with the parts built that need no model."""
    settings = dict(given)
    if "rate" in settings:
        raise SettingError(f"method.rate cannot be set in a file. {_PACE}")
    if "question" in settings:
        raise SettingError("method.question cannot be set in a file. Set labels.question.")
    if "selector" in settings:
        settings["selector"] = build_selector(settings["selector"], seed)
    if "trainer" in settings:
        settings["trainer"] = _trainer(settings["trainer"], seed)
    return settings


def _source_input_count(kind: Callable[..., Any], settings: Mapping[str, Any]) -> int:
    """Return how many source inputs a method can use."""
    if SOURCE_INPUTS in settings or not (isinstance(kind, type) and issubclass(kind, NeedsSource)):
        return 0
    count = kind.source_input_count(settings)
    # If a wrong setting makes it invalid, the method itself reports the setting.
    return count if isinstance(count, int) and count > 0 else 0


def build_pool(
    experiment: Experiment, table: PoolTable, stream: Rounds, model: Classifier
) -> PoolAdaptation:
    """Build the method of a pool run."""
    budget = experiment.labels.budget
    if budget == "unlimited":
        raise SettingError(
            "labels.budget: with a [pool] the budget must have a limit, because the rounds share "
            "it. Set a number of labels."
        )
    return PoolAdaptation(
        model,
        stream.pool,
        selector=build_selector(table.selector, experiment.seed),
        budget=budget,
        forward_batch=experiment.stream.batch_size,
        seed=experiment.seed,
        **table.model_dump(exclude={"selector", "label"}),
    )


def check_pool(experiment: Experiment, table: PoolTable) -> None:
    """Raise `SettingError` if a pool run cannot work, as far as this is known without a model."""
    if experiment.method != MethodTable():
        raise SettingError(
            "An experiment has either a [method] for a stream or a [pool]: leave one of them out."
        )
    if experiment.labels.per_1000 is not None or experiment.labels.spread_over is not None:
        raise SettingError(
            "labels: with a [pool] the rounds set the pace. Leave out per_1000 and spread_over."
        )
    if experiment.labels.question == "yes_no":
        raise SettingError(
            'labels.question: a [pool] learns from classes only. Leave out question = "yes_no".'
        )
    if experiment.labels.buffer:
        raise SettingError("labels.buffer: a [pool] is used as a whole. Leave out buffer.")
    build_selector(table.selector, experiment.seed)


def build_selector(given: Any, seed: int) -> Selector:
    """Build a selector from its table, or from its name alone."""
    name, settings = _name_and_settings(given, "selector", DEFAULT_SELECTOR)
    kind = find_named(name, SELECTORS, "selector")
    if settings.keys() & {"first", "per_step"} - settings_of(kind).keys():
        raise SettingError(f"method.selector: {name} does not set the pace. {_PACE}")
    selector: Selector = construct(kind, settings, seed=seed)
    return selector


def _trainer(given: Any, seed: int) -> Any:
    """Build a trainer from its table, or from its name alone."""
    name, settings = _name_and_settings(given, "trainer", DEFAULT_TRAINER)
    kind = find_named(name, TRAINERS, "trainer")
    if "weighting" in settings:
        settings["weighting"] = construct(Weighting, settings["weighting"])
    return construct(kind, settings, seed=seed)


def _name_and_settings(
    given: Any, part: str, default: str | None = None
) -> tuple[Any, dict[str, Any]]:
    """Split the entry of a part in [method]: a table, or a name alone."""
    chosen = {"name": given} if isinstance(given, str) else given
    if not isinstance(chosen, Mapping) or (default is None and "name" not in chosen):
        table = "a table with a name" if default is None else "a table"
        raise SettingError(
            f"method.{part} must be a name or {table}, got {given!r}. For example "
            f'[method.{part}] with name = "{default or "tent"}".'
        )
    settings = dict(chosen)
    return settings.pop("name", default), settings
