"""The settings of a service, kept in its folder, so that other commands need only the folder."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from attakit.errors import SettingError, StateError
from attakit.service.saved_database import SETTINGS_FILE, check_password
from attakit.service.storage import LabelRules, Storage, open_storage
from attakit.service.storage.database import database_url
from attakit.service.storage.permissions import make_private_folder, write_private_text
from attakit.settings.load import load_service, parse_service
from attakit.settings.service import ServiceSettings


def keep_settings(settings: ServiceSettings) -> Path:
    """Write the settings of a service into its folder, without the password of its database."""
    kept = settings
    if settings.database is not None:
        shown = database_url(settings.folder, settings.database)
        url = shown.render_as_string(hide_password=True)
        kept = settings.model_copy(update={"database": url})
    path = settings.folder / SETTINGS_FILE
    make_private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    write_private_text(draft, kept.model_dump_json(indent=2) + "\n")
    os.replace(draft, path)
    return path


def find_settings(place: Path) -> ServiceSettings:
    """The settings of a service, from its folder or from its file.

    >>> find_settings(Path("nowhere"))
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: There is no service in nowhere. Name the folder of one that was
    started with `attakit serve`, or its TOML file.
    """
    if place.is_file() and place.name != SETTINGS_FILE:
        return load_service(place)
    path = place / SETTINGS_FILE
    if not path.is_file():
        raise SettingError(
            f"There is no service in {place}. Name the folder of one that was started with "
            f"`attakit serve`, or its TOML file."
        )
    try:
        tables = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StateError(f"{path} cannot be read ({error}). Start the service again.") from error
    # The folder may have been moved since.
    return parse_service(tables, where=str(path)).model_copy(update={"folder": place})


def open_service(
    settings: ServiceSettings,
    database: str | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> Storage:
    """What a service remembers.

    Parameters
    ----------
    settings
        Of the service.
    database
        URL to use instead of the one in the settings.
    clock
        Tells the time.
    """
    url = database or settings.database
    check_password(url)
    return open_storage(settings.folder, url, labels=label_rules(settings), clock=clock)


def label_rules(settings: ServiceSettings) -> LabelRules:
    """When an answer counts, as the settings say."""
    table = settings.labels
    return LabelRules(
        policy=table.policy,
        answers=table.answers,
        lease_seconds=table.lease_seconds,
        settle_seconds=table.settle_seconds,
        expiry_seconds=table.expiry_seconds,
        classes=len(settings.classes),
    )
