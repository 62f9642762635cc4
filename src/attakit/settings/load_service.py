"""Service files: TOML, with overrides, read as experiment files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from attakit.errors import SettingError
from attakit.settings.load import apply_overrides, first_problem, read_tables
from attakit.settings.service import ServiceSettings


def load_settings(path: Path, overrides: Sequence[str] = ()) -> ServiceSettings:
    """Read a service file and apply `a.b=c` overrides."""
    tables = apply_overrides(read_tables(path, "a service"), overrides)
    return parse_settings(tables, where=str(path))


def parse_settings(tables: Mapping[str, Any], where: str = "service") -> ServiceSettings:
    """Check plain tables and turn them into settings.

    >>> parse_settings({"classes": ["cat", "dog"], "gate": {"confidense": 0.9}})
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: service: unknown setting gate.confidense. Did you mean
    'confidence'? Known: audit_margin, audit_needed, audit_window, confidence, every,
    keep_versions, roll_back, source_margin, trust.
    """
    try:
        return ServiceSettings.model_validate(dict(tables))
    except ValidationError as error:
        raise SettingError(f"{where}: {first_problem(error, ServiceSettings)}") from error
