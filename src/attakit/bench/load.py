"""Experiment files: TOML, with overrides; unknown keys are errors that name the nearest known."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from attakit.bench.experiment import Experiment
from attakit.errors import SettingError, nearest_hint


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and apply `a.b=c` overrides."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingError(f"There is no experiment file at {path}.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read as an experiment file: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} is not valid TOML: {error}.") from error
    return parse_experiment(apply_overrides(tables, overrides), where=str(path))


def parse_experiment(tables: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """Check plain tables and turn them into an `Experiment`.

    >>> parse_experiment({"stream": {"bach_size": 10}})
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: experiment: unknown setting stream.bach_size. Did you mean
    'batch_size'? Known: batch_size, held_out, name, order, order_settings, root, severity, share,
    size, skip_corrupt, source, targets.
    """
    try:
        return Experiment.model_validate(dict(tables))
    except ValidationError as error:
        raise SettingError(f"{where}: {_first_problem(error)}") from error


def apply_overrides(tables: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Set `a.b=c` in nested tables. Values are TOML; what is not TOML is taken as text.

    >>> apply_overrides({"method": {"name": "tent"}}, ["method.lr=1e-4", "method.name=simatta"])
    {'method': {'name': 'simatta', 'lr': 0.0001}}
    """
    result = _copied(tables)
    for override in overrides:
        key, equals, value = override.partition("=")
        names = key.strip().split(".")
        if not equals or not all(names):
            raise SettingError(f"--set takes table.name=value, got {override!r}.")
        place = result
        for name in names[:-1]:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise SettingError(f"--set {override}: {name} is a value, not a table.")
        place[names[-1]] = _value(value.strip())
    return result


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _copied(tables: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _copied(value) if isinstance(value, Mapping) else value
        for name, value in tables.items()
    }


def _first_problem(error: ValidationError) -> str:
    problems = error.errors()
    path, table = _locate(problems[0]["loc"])
    if problems[0]["type"] == "extra_forbidden":
        known = sorted(table.model_fields)
        hint = nearest_hint(path[-1], known)
        return f"unknown setting {'.'.join(path)}.{hint} Known: {', '.join(known)}."
    # A setting of several types has one problem for each.
    same = [problem for problem in problems if _locate(problem["loc"])[0] == path]
    wanted = " or ".join(dict.fromkeys(_wanted(problem) for problem in same))
    return f"{'.'.join(path)} must be {wanted}, got {problems[0]['input']!r}."


def _wanted(problem: ErrorDetails) -> str:
    if problem["type"] == "model_type":
        return "a table"
    return problem["msg"].removeprefix("Input should be ")


def _locate(location: tuple[int | str, ...]) -> tuple[list[str], type[BaseModel]]:
    """Names down to the setting itself, and the table it belongs to."""
    table: type[BaseModel] = Experiment
    names: list[str] = []
    for part in location:
        names.append(str(part))
        field = table.model_fields.get(str(part))
        inner = None if field is None else _without_none(field.annotation)
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)) or part == location[-1]:
            break
        table = inner
    return names, table


def _without_none(annotation: Any) -> Any:
    """The table of a setting that is a table or nothing."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    return kinds[0] if len(kinds) == 1 else annotation
