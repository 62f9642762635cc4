"""The settings that a service saves in its folder, so that other commands need only the folder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attakit.errors import SettingError, StateError
from attakit.files import atomic_write, make_private_folder, write_private_text
from attakit.service.storage import LabelRules, Storage, open_storage
from attakit.service.storage.database import check_database_file, database_url

if TYPE_CHECKING:
    from attakit.settings.service import ServiceSettings

SETTINGS_FILE = "settings.json"
_HIDDEN = "***"  # SQLAlchemy writes this in place of a password
# The file also records which method defaults the service began with. The service keeps them,
# because others would not fit the learner's state. The first versions recorded nothing.
_DEFAULTS, _FIRST, _PRESENT = "defaults", 1, 2
_FIRST_CLUSTERS = {"cluster_growth": 1.0, "initial_clusters": 10}


def save_settings(settings: ServiceSettings) -> Path:
    """Write the settings into the service's folder, without the password of the database."""
    saved = settings
    if settings.database is not None:
        url = database_url(settings.folder, settings.database)
        shown = url.render_as_string(hide_password=True)
        saved = settings.model_copy(update={"database": shown})
    path = settings.folder / SETTINGS_FILE
    make_private_folder(path.parent)
    tables = {_DEFAULTS: _first_or_present(settings.folder), **saved.model_dump(mode="json")}
    with atomic_write(path) as draft:
        write_private_text(draft, json.dumps(tables, indent=2) + "\n")
    return path


def find_settings(place: Path) -> ServiceSettings:
    """Read the settings of a service from its folder or from its TOML file.

    >>> find_settings(Path("nowhere"))
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: There is no service in nowhere. Name the folder of one that was
    started with `attakit serve`, or its TOML file.
    """
    # Building the tables takes a tenth of the start-up of `attakit token`, which needs none.
    from attakit.settings.load import load_service, parse_service  # noqa: PLC0415

    if place.is_file() and place.name != SETTINGS_FILE:
        return load_service(place)
    tables = _read_saved(place)
    if tables is None:
        raise SettingError(
            f"There is no service in {place}. Name the folder of one that was started with "
            f"`attakit serve`, or its TOML file."
        )
    tables.pop(_DEFAULTS, None)
    settings = parse_service(tables, where=str(place / SETTINGS_FILE))
    # The folder may have been moved since.
    return settings.model_copy(update={"folder": place})


def with_saved_method(settings: ServiceSettings) -> ServiceSettings:
    """Continue with the method that the service in the folder has, and with its old defaults.

    The default method has changed once, and so have SimATTA's defaults and the share of the first
    audit questions. A folder cannot change its method. Given settings override saved ones and
    defaults.
    """
    given = settings.method
    table = given.model_dump(exclude_unset=True)
    with suppress(StateError):  # unreadable: the database also knows the method and checks it
        saved = (_read_saved(settings.folder) or {}).get("method", {})
        if "name" not in table and saved.get("name", given.name) != given.name:
            table = {**saved, **table}
    labels = settings.labels
    if _first_or_present(settings.folder) == _FIRST:
        table = _with_first_defaults({"name": given.name, **table})
        labels = type(labels)(**{"early_audit_share": 0.0, **labels.model_dump(exclude_unset=True)})
    method = type(given).model_validate(table)
    return settings.model_copy(update={"method": method, "labels": labels})


def _first_or_present(folder: Path) -> int:
    """Return which defaults the service in a folder has; the current ones for a new folder."""
    try:
        saved = _read_saved(folder)
    except StateError:
        return _PRESENT
    return int(saved.get(_DEFAULTS, _FIRST)) if saved else _PRESENT


def _with_first_defaults(table: dict[str, Any]) -> dict[str, Any]:
    """Read a table [method] like services that began before SimATTA's defaults changed."""
    if table["name"] != "simatta":
        return table
    selector, trainer = (
        {"name": given} if isinstance(given, str) else given
        for given in (table.get("selector", {}), table.get("trainer", {}))
    )
    if isinstance(selector, dict) and selector.get("name", "incremental") == "incremental":
        selector = {**_FIRST_CLUSTERS, **selector}
    if isinstance(trainer, dict):
        trainer = {"name": "balanced", **trainer}
    parts = {"selector": selector, "trainer": trainer}
    return {"trainable": "all", "norm": "frozen", **table, **parts}


def saved_database_url(folder: Path) -> str | None:
    """Return the saved URL of the database; None if it is in the folder, or nothing is saved."""
    url = (_read_saved(folder) or {}).get("database")
    return None if url is None else str(url)


def check_password(url: str | None) -> None:
    """Raise `SettingError` if a URL was saved without its password."""
    if url is not None and _HIDDEN in url:
        raise SettingError(
            f"This service keeps its questions in {url}, whose password is not saved. Give the "
            f"whole URL with --database or in the variable ATTAKIT_DATABASE."
        )


def open_service(
    settings: ServiceSettings,
    database: str | None = None,
    *,
    clock: Callable[[], float] = time.time,
    new: bool = True,
) -> Storage:
    """Open the storage of a service. `database` is a URL that overrides the settings.

    Unless it may be `new`, raise `StateError` if its file does not exist.
    """
    url = database or settings.database
    check_password(url)
    if not new:
        check_database_file(database_url(settings.folder, url))
    return open_storage(settings.folder, url, labels=label_rules(settings), clock=clock)


def label_rules(settings: ServiceSettings) -> LabelRules:
    """Return the rules for questions and answers that the settings contain."""
    table = settings.labels
    return LabelRules(
        policy=table.policy,
        answers=table.answers,
        lease_seconds=table.lease_seconds,
        settle_seconds=table.settle_seconds,
        expiry_seconds=table.expiry_seconds,
        classes=len(settings.classes),
    )


def _read_saved(folder: Path) -> dict[str, Any] | None:
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return None
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(tables, dict):
            raise ValueError("it is not a JSON object")
    except (OSError, ValueError) as error:
        raise StateError(f"{path} cannot be read ({error}). Start the service again.") from error
    return tables
