"""The tree of errors, and the checks that raise them."""

import math
from collections.abc import Callable

import pytest

from attakit import errors
from attakit.errors import (
    AttaError,
    SettingError,
    check_choice,
    check_count,
    check_range,
    unknown_name,
)


def all_errors(parent: type[AttaError] = AttaError) -> list[type[AttaError]]:
    return [parent] + [error for child in parent.__subclasses__() for error in all_errors(child)]


def test_tree_at_the_top_names_every_error() -> None:
    assert errors.__doc__ is not None
    tree = errors.__doc__.split("\n\n")[1]

    for error in all_errors():
        if error.__module__ == "attakit.errors":
            assert error.__name__ in tree


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.SettingError, ValueError),
        (errors.UnknownName, SettingError),
        (errors.ModelError, ValueError),
        (errors.BudgetExhausted, errors.LabelError),
        (errors.UnknownQuestion, errors.LabelError),
        (errors.MissingExtra, ImportError),
    ],
)
def test_errors_can_be_caught_by_their_wider_kind(
    error: type[AttaError], builtin: type[Exception]
) -> None:
    assert issubclass(error, builtin)
    assert issubclass(error, AttaError)


def test_values_within_their_bounds_pass() -> None:
    check_range("Part", "rate", 0, at_least=0, at_most=1)
    check_range("Part", "rate", 1.0, at_least=0, at_most=1)
    check_range("Part", "rate", 0.1, above=0)
    check_range("Part", "rate", math.inf, above=0)
    check_count("Part", "count", 0, at_least=0)
    check_count("Part", "count", 3, at_least=3, at_most=3)
    check_choice("Part", "mode", "a", ("a", "b"))


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (
            lambda: check_range("Part", "rate", -1, at_least=0, at_most=1),
            "Part: rate must be at least 0 and at most 1, got -1.",
        ),
        (
            lambda: check_range("Part", "rate", 0, above=0),
            "Part: rate must be greater than 0, got 0.",
        ),
        (
            lambda: check_range("Part", "rate", math.nan, at_least=0),
            "Part: rate must be a number, got nan.",
        ),
        (
            lambda: check_range("Part", "rate", "1", at_least=0),
            "Part: rate must be a number, got '1'.",
        ),
        (
            lambda: check_range("Part", "rate", True, at_least=0),
            "Part: rate must be a number, got True.",
        ),
        (
            lambda: check_count("Part", "count", -1, at_least=0),
            "Part: count must be at least 0, got -1.",
        ),
        (
            lambda: check_count("Part", "count", 9, at_most=8),
            "Part: count must be at least 1 and at most 8, got 9.",
        ),
        (lambda: check_count("Part", "count", 1.0), "Part: count must be a whole number, got 1.0."),
        (
            lambda: check_count("Part", "count", False),
            "Part: count must be a whole number, got False.",
        ),
        (
            lambda: check_choice("Part", "mode", 3, ("a", "b")),
            "Part: mode must be one of a, b, got 3.",
        ),
    ],
)
def test_value_out_of_bounds_is_named(check: Callable[[], None], message: str) -> None:
    with pytest.raises(SettingError) as caught:
        check()

    assert str(caught.value) == message


def test_unknown_name_without_a_near_one_lists_all() -> None:
    error = unknown_name("method", "zebra", ["tent", "simatta"])

    assert str(error) == "Unknown method 'zebra'. Known: simatta, tent."
