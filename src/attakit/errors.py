"""Everything that can go wrong, as one tree.

    AttaError
    ├── SettingError         a setting is unknown, missing or out of range   (also a ValueError)
    │   └── UnknownName      no method, selector or data set has that name
    ├── ModelError           this model cannot be adapted this way           (also a ValueError)
    │   ├── DoesNotApply     the model lacks what the method adapts
    │   └── UnwritableFile   weights cannot be saved, perhaps for lack of space
    ├── StreamError          data is missing or malformed
    ├── LabelError
    │   ├── BudgetExhausted  more labels asked than the budget allows
    │   └── UnknownQuestion  an answer to something never asked
    ├── StateError           a saved run does not fit this version or method
    ├── ServiceError         a service refused a request, or cannot be reached
    └── MissingExtra         an optional dependency is not installed         (also an ImportError)

Every message says who complains, what is wrong, what was given, and what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from numbers import Integral


class AttaError(Exception):
    """Base of all errors that attakit raises on purpose."""


class SettingError(AttaError, ValueError):
    """A setting is unknown, missing or out of range."""


class UnknownName(SettingError):
    """No method, selector or data set has that name."""


class ModelError(AttaError, ValueError):
    """This model cannot be adapted this way."""


class DoesNotApply(ModelError):
    """The model lacks what the method adapts. In a suite this is not a failure."""


class UnwritableFile(ModelError):
    """Weights cannot be saved, for example because the disk is full. Trying again may help."""


class StreamError(AttaError):
    """Data is missing or malformed."""


class LabelError(AttaError):
    """Something is wrong with questions or answers."""


class BudgetExhausted(LabelError):
    """More labels were asked for than the budget allows."""


class UnknownQuestion(LabelError):
    """An answer arrived for a question that was never asked."""


class StateError(AttaError):
    """A saved run does not fit this version or method."""


class ServiceError(AttaError):
    """A service refused a request, or cannot be reached.

    Parameters
    ----------
    message
        What the service said.
    status
        HTTP status; None if no answer came.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class MissingExtra(AttaError, ImportError):
    """An optional dependency is not installed."""


@contextmanager
def needs_extra(what: str, extra: str) -> Iterator[None]:
    """Turn a failed import of another package into the pip command that installs it.

    Examples
    --------
    >>> with needs_extra("Drawing", "report"):
    ...     import no_such_package
    Traceback (most recent call last):
        ...
    attakit.errors.MissingExtra: Drawing needs the package no_such_package, which is not installed.
    Install it with: pip install 'attakit[report]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "attakit"):  # a bug in attakit, not a missing package
            raise
        raise MissingExtra(
            f"{what} needs the package {package}, which is not installed. "
            f"Install it with: pip install 'attakit[{extra}]'"
        ) from error


def check_range(
    who: str,
    name: str,
    value: float,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
) -> None:
    """Raise `SettingError` unless a number lies within its bounds.

    Examples
    --------
    >>> check_range("Tent", "updates", 0, at_least=1)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: Tent: updates must be at least 1, got 0.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise SettingError(f"{who}: {name} must be a number, got {value!r}.")
    bounds = []
    if at_least is not None:
        bounds.append((value >= at_least, f"at least {at_least}"))
    if above is not None:
        bounds.append((value > above, f"greater than {above}"))
    if at_most is not None:
        bounds.append((value <= at_most, f"at most {at_most}"))
    if not all(holds for holds, _ in bounds):
        wanted = " and ".join(words for _, words in bounds)
        raise SettingError(f"{who}: {name} must be {wanted}, got {value}.")


def check_count(
    who: str, name: str, value: object, *, at_least: int = 1, at_most: int | None = None
) -> None:
    """Raise `SettingError` unless a value is a whole number within its bounds.

    Examples
    --------
    >>> check_count("Stream", "batch_size", 0.5)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: Stream: batch_size must be a whole number, got 0.5.
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SettingError(f"{who}: {name} must be a whole number, got {value!r}.")
    check_range(who, name, int(value), at_least=at_least, at_most=at_most)


def check_choice(who: str, name: str, value: object, choices: Iterable[str]) -> None:
    """Raise `SettingError` unless a value is one of the allowed words.

    Examples
    --------
    >>> check_choice("SimATTA", "kmeans", "sklear", ("sklearn", "torch"))
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: SimATTA: kmeans must be one of sklearn, torch, got 'sklear'.
    """
    known = list(choices)
    if value not in known:
        raise SettingError(f"{who}: {name} must be one of {', '.join(known)}, got {value!r}.")


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """Build the error for an unknown name, with the closest known one.

    Examples
    --------
    >>> print(unknown_name("method", "simata", ["simatta", "tent"]))
    Unknown method 'simata'. Did you mean 'simatta'? Known: simatta, tent.
    """
    names = sorted(known)
    return UnknownName(
        f"Unknown {kind} '{name}'.{nearest_hint(name, names)} Known: {', '.join(names)}."
    )


def unknown_setting(who: str, name: str, known: Iterable[str]) -> SettingError:
    """Build the error for an unknown setting, with the closest known one.

    Examples
    --------
    >>> print(unknown_setting("Tent", "upates", ["lr", "updates"]))
    Tent: unknown setting 'upates'. Did you mean 'updates'? Known: lr, updates.
    """
    names = list(known)
    listed = ", ".join(names) or "none"
    return SettingError(
        f"{who}: unknown setting '{name}'.{nearest_hint(name, names)} Known: {listed}."
    )


def nearest_hint(name: str, known: Iterable[str], count: int = 1) -> str:
    """Suggest known names that look similar, after a space. Empty if none is close.

    Examples
    --------
    >>> nearest_hint("simata", ["simatta", "tent"])
    " Did you mean 'simatta'?"
    """
    near = get_close_matches(name, list(known), n=count)
    return f" Did you mean {' or '.join(repr(one) for one in near)}?" if near else ""
