"""Call classes with settings from a file, found by name or by import path."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attakit.errors import SettingError, unknown_name, unknown_setting


def construct(
    kind: Callable[..., Any], settings: Any, *arguments: Any, seed: int | None = None
) -> Any:
    """Call a class with settings from a file. For an unknown name, the error names the closest."""
    check_settings(kind, settings, arguments)
    if seed is not None and "seed" in settings_of(kind):
        settings = {"seed": seed, **settings}
    try:
        return kind(*arguments, **settings)
    except TypeError as error:
        given = ", ".join(f"{name} = {value!r}" for name, value in settings.items())
        raise SettingError(
            f"{_name_of(kind)}: a setting has the wrong type ({error}), got {given}."
        ) from error


def _name_of(kind: Callable[..., Any]) -> str:
    return getattr(kind, "__name__", str(kind))


def check_settings(kind: Callable[..., Any], settings: Any, arguments: Sequence[Any]) -> None:
    """Raise `SettingError` if a class does not accept these settings."""
    who = _name_of(kind)
    if not isinstance(settings, Mapping):
        raise SettingError(f"{who}: settings must be a table, got {settings!r}.")
    known = settings_of(kind)
    for name in settings:
        if name not in known:
            raise unknown_setting(who, name, known)
        _check_switch(who, name, settings[name], known[name].default)
    _check_call(who, kind, arguments, settings)


def _check_call(
    who: str, kind: Callable[..., Any], arguments: Sequence[Any], settings: Mapping[str, Any]
) -> None:
    """Check that it can be called with these arguments. Its own errors are not caught here."""
    try:
        inspect.signature(kind).bind(*arguments, **settings)
    except TypeError as error:
        raise SettingError(
            f"{who} cannot be created from the given settings: {error}. It must take "
            f"{len(arguments)} positional arguments. Give all its settings that have no default."
        ) from error


def settings_of(kind: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(kind).parameters
    return {name: each for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}


def _check_switch(who: str, name: str, value: Any, default: Any) -> None:
    # The text "false" would count as true.
    if isinstance(default, bool) and not isinstance(value, bool):
        raise SettingError(f"{who}: {name} must be true or false, got {value!r}.")


# The members that a class of each kind must have. Checked before the class is called.
_MEMBERS = {
    "method": ("predict", "step", "learn", "state_dict", "load_state_dict"),
    "selector": ("select",),
    "trainer": ("fit", "state_dict", "load_state_dict"),
}


def find_named(name: Any, table: Mapping[str, Callable[..., Any]], kind: str) -> Callable[..., Any]:
    """Return the class with a name in a table, or at an import path."""
    if not isinstance(name, str):
        raise SettingError(f"The name of a {kind} must be a text, got {name!r}.")
    if name in table:
        return table[name]
    if ":" not in name:
        raise unknown_name(kind, name, table)
    found = import_named(name, kind)
    _check_class(found, name, kind)
    return found


def _check_class(found: Callable[..., Any], name: str, kind: str) -> None:
    """Raise `SettingError` unless this is a class with the methods that its kind needs."""
    needed = _MEMBERS.get(kind, ())
    is_class = isinstance(found, type)
    lacking = [member for member in needed if not hasattr(found, member)]
    if not is_class or lacking:
        what = f"has no {', '.join(lacking)}" if is_class else f"is a {type(found).__name__}"
        raise SettingError(
            f"The {kind} {name!r} must be a class with {', '.join(needed)}, but it {what}."
        )


def import_named(name: str, kind: str) -> Callable[..., Any]:
    """Import "package.module:Class"; `kind` names its role in errors.

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
    except (Exception, SystemExit) as error:  # a user's module may do anything
        raise SettingError(
            f"The {kind} {name!r} cannot be imported because its module fails: "
            f"{type(error).__name__}: {error}. Fix the module."
        ) from error
    if not callable(found):
        raise SettingError(
            f"The {kind} {name!r} must be a class, but it is a {type(found).__name__}. Name a "
            "class."
        )
    return found
