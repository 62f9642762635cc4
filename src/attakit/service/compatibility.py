"""What a folder, a database and the settings of a service must agree on."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attakit.errors import SettingError, StateError
from attakit.service.storage import Storage
from attakit.settings.service import ServiceSettings

ID_FILE = "service.id"


def check_belonging(settings: ServiceSettings, storage: Storage) -> None:
    """Raise an error if the database is that of another folder, or of another kind of service.

    Two learners on one database would mix their turns; labels are kept as the positions of their
    classes; a method and its inputs must fit the learner's checkpoint; and what was paid for a
    question cannot be told later from what one costs now.
    """
    name = _name(settings.folder)
    owner = storage.key_values.get("service")
    if owner not in (None, name):
        raise StateError(
            f"The database belongs to a service in another folder than {settings.folder}, where "
            f"its model versions are. Start with that folder, or give another database."
        )
    before, now = storage.key_values.get("classes"), list(settings.classes)
    if before not in (None, now):
        raise SettingError(
            f"classes: the service in {settings.folder} has the classes {', '.join(before)}, in "
            f"this order, got {', '.join(now)}. Its labels would name others: keep the classes, "
            f"or use another folder."
        )
    kept = _must_stay(settings)
    _check_kept(settings, storage, kept)
    storage.key_values.set("service", name)
    storage.key_values.set("classes", now)
    for fact, (_, value) in kept.items():
        storage.key_values.set(fact, value)


def _must_stay(settings: ServiceSettings) -> dict[str, tuple[str, Any]]:
    """By the name of the fact: which setting it is, and what it is now."""
    return {
        "method": ("method.name", settings.method.name),
        "input": ("input", settings.input.model_dump(mode="json")),
        "cost": ("labels.answers", settings.labels.cost),
    }


def _check_kept(
    settings: ServiceSettings, storage: Storage, kept: Mapping[str, tuple[str, Any]]
) -> None:
    for fact, (setting, now) in kept.items():
        before = storage.key_values.get(fact)
        if before is not None and before != now and storage.turns.last() >= 0:
            raise SettingError(
                f"{setting}: the service in {settings.folder} has learned with {before}, got "
                f"{now}. What it remembers would not fit: keep it, or use another folder."
            )


def _name(folder: Path) -> str:
    """The name of the service in a folder, made on first use."""
    file = folder / ID_FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(uuid.uuid4().hex + "\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
