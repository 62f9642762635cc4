"""What a folder, a database and the settings of a service must agree on."""

from __future__ import annotations

import uuid
from pathlib import Path

from attakit.errors import SettingError, StateError
from attakit.service.settings import ServiceSettings
from attakit.service.storage import Storage

ID_FILE = "service.id"


def check_belonging(settings: ServiceSettings, storage: Storage) -> None:
    """Raise an error if the database is that of another folder, or of other classes.

    Two learners on one database would mix their turns, and labels are kept as the positions of
    their classes.
    """
    name = _name(settings.folder)
    owner = storage.facts.get("service")
    if owner not in (None, name):
        raise StateError(
            f"The database belongs to a service in another folder than {settings.folder}, where "
            f"its model versions are. Start with that folder, or give another database."
        )
    before, now = storage.facts.get("classes"), list(settings.classes)
    if before not in (None, now):
        raise SettingError(
            f"classes: the service in {settings.folder} has the classes {', '.join(before)}, in "
            f"this order, got {', '.join(now)}. Its labels would name others: keep the classes, "
            f"or use another folder."
        )
    storage.facts.set("service", name)
    storage.facts.set("classes", now)


def _name(folder: Path) -> str:
    """The name of the service in a folder, made on first use."""
    file = folder / ID_FILE
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(uuid.uuid4().hex + "\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
