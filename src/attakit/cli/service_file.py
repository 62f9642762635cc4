"""What `attakit serve` and `attakit learn` share: a service file and options that change it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from attakit.settings.load import apply_overrides, parse_service, put_value
from attakit.settings.service import ServiceSettings

ServiceFolder = Annotated[
    Path | None, typer.Option(help="The service's folder; by default the one in the file.")
]


def service_settings(
    tables: dict[str, Any],
    overrides: list[str] | None,
    given: Mapping[str, Any],
    *,
    where: str,
) -> ServiceSettings:
    """Return a file's settings, changed by `--set` and by options (setting -> value or None)."""
    tables = apply_overrides(tables, overrides or [])
    for name, value in given.items():
        if value is not None:
            put_value(tables, name.split("."), value, where=f"--{name.rpartition('.')[2]}")
    return parse_service(tables, where=where)
