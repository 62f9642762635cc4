"""From experiment tables to objects."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from attakit.errors import SettingError, unknown_name, unknown_setting
from attakit.label.budget import Budget
from attakit.label.known import KnownLabels
from attakit.label.ledger import Ledger
from attakit.label.terminal import Terminal
from attakit.label.wrappers import Delayed, Expiring, Noisy, Skipping
from attakit.methods import METHODS
from attakit.protocols import Asks, Method, NeedsSource, Oracle, Selector
from attakit.queries import SampleId
from attakit.randomness import generator
from attakit.select import SELECTORS
from attakit.settings.experiment import DEFAULT_SELECTOR, Experiment, LabelsTable, MethodTable
from attakit.stream.samples import Samples
from attakit.stream.truth import Truth
from attakit.train.balanced import BalancedTrainer
from attakit.train.weighting import Weighting

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
    kind = _named(name, METHODS, "method")
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
    kind = _named(name, METHODS, "method")
    settings = _with_parts(given, seed=0)
    if "method" in settings:
        _check_method(*_inner_table(settings["method"]))
    _check_settings(kind, settings, [None])  # in the place of the model


def asks_for_labels(name: str) -> bool:
    """Whether a method, by name or import path, declares that it asks for labels.

    >>> asks_for_labels("simatta"), asks_for_labels("tent")
    (True, False)
    """
    kind = _named(name, METHODS, "method")
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


def draw_inputs(source: Samples, seed: int, count: int) -> Tensor:
    """Load inputs of at most so many samples, drawn at random."""
    order = generator(seed, "source inputs").permutation(len(source))
    return source.load(order[:count].tolist())


def build_oracle(
    table: LabelsTable,
    truth: Truth,
    seed: int,
    *,
    where: Callable[[SampleId], str] = str,
    write: Callable[[str], None] | None = None,
) -> Oracle:
    """Build the oracle that the [labels] table describes, wrapped as it says."""
    oracle: Oracle
    if table.oracle == "ask":
        oracle = Terminal(truth.classes, where=where, read=_read)
        oracle.write = write or oracle.write
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


def _read(prompt: str) -> str:
    # Not with input(prompt), which prompts on standard output, where results may go.
    sys.stderr.write(prompt)
    sys.stderr.flush()
    return input()


def build_ledger(experiment: Experiment) -> Ledger:
    """Build the ledger with the experiment's budget."""
    budget = experiment.labels.budget
    return Ledger(Budget(None if budget == "unlimited" else budget))


def build_pool_selector(given: str | Mapping[str, Any], seed: int) -> Selector:
    """A selector for rounds: where it has a pace, it is unlimited unless the table says more."""
    kind, settings = _selector_kind(given)
    paced = {name: "unlimited" for name in ("first", "per_step") if name in _settings_of(kind)}
    selector: Selector = construct(kind, paced | settings, seed=seed)
    return selector


def construct(
    kind: Callable[..., Any], settings: Any, *arguments: Any, seed: int | None = None
) -> Any:
    """Call a class with settings from a file; unknown names are errors that name the nearest."""
    _check_settings(kind, settings, arguments)
    if seed is not None and "seed" in _settings_of(kind):
        settings = {"seed": seed, **settings}
    try:
        return kind(*arguments, **settings)
    except TypeError as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
        raise SettingError(
            f"{_who(kind)}: a setting has the wrong type ({error}), got {given}."
        ) from error


def _who(kind: Callable[..., Any]) -> str:
    return getattr(kind, "__name__", str(kind))


def _check_settings(kind: Callable[..., Any], settings: Any, arguments: Sequence[Any]) -> None:
    """Raise `SettingError` where a class has no such settings, or cannot be called with them."""
    who = _who(kind)
    if not isinstance(settings, Mapping):
        raise SettingError(f"{who}: settings must be a table, got {settings!r}.")
    known = _settings_of(kind)
    for name in settings:
        if name not in known:
            raise unknown_setting(who, name, known)
        _check_switch(who, name, settings[name], known[name].default)
    _check_call(who, kind, arguments, settings)


def _check_call(
    who: str, kind: Callable[..., Any], arguments: Sequence[Any], settings: Mapping[str, Any]
) -> None:
    """Whether it can be called so at all; what is wrong inside is another matter."""
    try:
        inspect.signature(kind).bind(*arguments, **settings)
    except TypeError as error:
        raise SettingError(
            f"{who}: it cannot be made from the settings given: {error}. It must take "
            f"{len(arguments)} positional arguments, and all settings without a default must be "
            f"given."
        ) from error


def _settings_of(kind: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(kind).parameters
    return {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}


def _check_switch(who: str, name: str, value: Any, default: Any) -> None:
    # The text "false" would count as true.
    if isinstance(default, bool) and not isinstance(value, bool):
        raise SettingError(f"{who}: {name} must be true or false, got {value!r}.")


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
    return _named(settings.pop("name", DEFAULT_SELECTOR), SELECTORS, "selector"), settings


def _trainer(given: Any, seed: int) -> BalancedTrainer:
    if not isinstance(given, Mapping):
        raise SettingError(f"method.trainer must be a table, got {given!r}.")
    settings = dict(given)
    if "weighting" in settings:
        settings["weighting"] = construct(Weighting, settings["weighting"])
    trainer: BalancedTrainer = construct(BalancedTrainer, settings, seed=seed)
    return trainer


def _named(name: Any, table: Mapping[str, Callable[..., Any]], kind: str) -> Callable[..., Any]:
    if not isinstance(name, str):
        raise SettingError(f"The name of a {kind} must be a text, got {name!r}.")
    if name in table:
        return table[name]
    if ":" not in name:
        raise unknown_name(kind, name, table)
    return import_named(name, kind)


def import_named(name: str, kind: str) -> Callable[..., Any]:
    """Import what "package.module:Class" names; `kind` says in errors what it should be.

    >>> import_named("attakit.methods:Tent", "method").__name__
    'Tent'
    """
    module, _, attribute = name.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingError(
            f"The {kind} {name!r} cannot be imported: {error}. The form is package.module:Class."
        ) from error
    except (Exception, SystemExit) as error:  # whatever a user's module does
        raise SettingError(
            f"The {kind} {name!r} cannot be imported, since its module fails: "
            f"{type(error).__name__}: {error}. Mend the module."
        ) from error
    if not callable(found):
        raise SettingError(f"The {kind} {name!r} is no class but a {type(found).__name__}.")
    return found
