"""Settings files: TOML with overrides. For an unknown key, errors name the closest known one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from attakit.errors import SettingError, nearest_hint
from attakit.settings.experiment import Experiment, Table
from attakit.settings.service import ServiceSettings

_Settings = TypeVar("_Settings", bound=Table)


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> Experiment:
    """Read an experiment file and apply `a.b=c` overrides."""
    tables = read_tables(path, "an experiment")
    if "grid" in tables:
        raise SettingError(
            f"{path}: the [grid] table makes this a suite. Run it with `attakit bench {path}`."
        )
    return parse_experiment(apply_overrides(tables, overrides), where=str(path))


def read_tables(path: Path, kind: str) -> dict[str, Any]:
    """Read the tables of a TOML file, unchecked. `kind` names the file in errors: "a suite"."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SettingError(
            f"There is no {kind.partition(' ')[2]} file at {path}. Check the name. Paths are "
            "relative to the folder where you start the command."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} cannot be read as {kind} file: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} is not valid TOML: {error}. Fix this place.") from error


def parse_experiment(tables: Mapping[str, Any], where: str = "experiment") -> Experiment:
    """Check plain tables and turn them into an `Experiment`.

    >>> parse_experiment({"stream": {"bach_size": 10}})
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: experiment: unknown setting stream.bach_size. Did you mean
    'batch_size'? Known: batch_size, held_out, name, order, order_settings, rest, root, severity,
    share, size, skip_corrupt, source, table, targets, text.
    """
    return parse_tables(Experiment, tables, where)


def load_service(path: Path, overrides: Sequence[str] = ()) -> ServiceSettings:
    """Read a service file and apply `a.b=c` overrides."""
    tables = apply_overrides(read_tables(path, "a service"), overrides)
    return parse_service(tables, where=str(path))


def parse_service(tables: Mapping[str, Any], where: str = "service") -> ServiceSettings:
    """Check plain tables and turn them into the settings of a service.

    >>> parse_service({"classes": ["cat", "dog"], "gate": {"confidense": 0.9}})
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: service: unknown setting gate.confidense. Did you mean
    'confidence'? Known: audit_margin, audit_needed, audit_window, confidence, every,
    keep_versions, known, roll_back, second_opinions, source_margin, trust.
    """
    return parse_tables(ServiceSettings, tables, where)


def parse_tables(kind: type[_Settings], tables: Mapping[str, Any], where: str) -> _Settings:
    """Check plain tables and turn them into settings. `where` is the prefix of error messages."""
    try:
        return kind.model_validate(dict(tables))
    except ValidationError as error:
        raise SettingError(f"{where}: {_first_problem(error, kind)}") from error


def apply_overrides(tables: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, Any]:
    """Set `a.b=c` in nested tables. Values are TOML; anything else is taken as text.

    >>> apply_overrides({"method": {"name": "tent"}}, ["method.lr=1e-4", "method.name=simatta"])
    {'method': {'name': 'simatta', 'lr': 0.0001}}
    """
    result = copy_tables(tables)
    for override in overrides:
        key, equals, value = override.partition("=")
        names = key.strip().split(".")
        if not equals or not all(names):
            raise SettingError(f"--set takes table.name=value, got {override!r}.")
        put_value(result, names, _value(value.strip()), where=f"--set {override}")
    return result


def put_value(tables: dict[str, Any], names: Sequence[str], value: Any, *, where: str) -> None:
    """Set one value in nested tables, in place, and create missing tables.

    >>> tables = {"method": {"name": "tent"}}
    >>> put_value(tables, ["method", "lr"], 0.1, where="example")
    >>> tables
    {'method': {'name': 'tent', 'lr': 0.1}}
    """
    place = tables
    for name in names[:-1]:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise SettingError(f"{where}: {name} is a value, not a table.")
    place[names[-1]] = value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def copy_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Copy nested tables so that the copy can be changed. Other values are shared."""
    return {
        name: copy_tables(value) if isinstance(value, Mapping) else value
        for name, value in tables.items()
    }


def _first_problem(error: ValidationError, root: type[BaseModel]) -> str:
    """Describe the first problem in one sentence. `root` is the kind of table that was checked."""
    problems = error.errors()
    path, table = _locate(problems[0]["loc"], root)
    if problems[0]["type"] == "extra_forbidden":
        known = sorted(table.model_fields)
        hint = nearest_hint(path[-1], known)
        return f"unknown setting {'.'.join(path)}.{hint} Known: {', '.join(known)}."
    if problems[0]["type"] == "missing":
        return f"{'.'.join(path)} is missing."
    # A setting that allows several types has one problem per type. If the first item of a list is
    # wrong, the problem of the list itself adds nothing.
    given = problems[0]["input"]
    same = [
        problem
        for problem in problems
        if problem["input"] is given and _locate(problem["loc"], root)[0] == path
    ]
    wanted = " or ".join(dict.fromkeys(_wanted(problem) for problem in same))
    return f"{'.'.join(path)} must be {wanted}, got {given!r}."


# What pydantic expects, in the words of a TOML user.
_KINDS = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("string_type", "path_type"), "a text"),
    **dict.fromkeys(("tuple_type", "list_type"), "a list"),
    **dict.fromkeys(("model_type", "dict_type"), "a table"),
    "string_too_short": "a text that is not empty",
}


def _wanted(problem: ErrorDetails) -> str:
    kind = problem["type"]
    if kind == "too_short":
        return f"a list of at least {problem['ctx']['min_length']}"
    return _KINDS.get(kind) or problem["msg"].removeprefix("Input should be ")


def _locate(
    location: tuple[int | str, ...], root: type[BaseModel]
) -> tuple[list[str], type[BaseModel]]:
    """Return the names down to the setting itself, and the table it belongs to."""
    table = root
    names: list[str] = []
    for part in location:
        names.append(str(part))
        if isinstance(part, int):  # the number of a table in a list of tables
            continue
        field = table.model_fields.get(part)
        inner = None if field is None else _table_inside(field.annotation)
        if inner is None or part == location[-1]:
            break
        table = inner
    return names, table


def _table_inside(annotation: Any) -> type[BaseModel] | None:
    """Return the table type of a setting, also if it is a list of tables."""
    kinds = (annotation, *get_args(annotation))
    return next((k for k in kinds if isinstance(k, type) and issubclass(k, BaseModel)), None)
