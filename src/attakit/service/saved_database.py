"""Where the database of a service is, as its folder tells: read without all that settings load."""

from __future__ import annotations

import json
from pathlib import Path

from attakit.errors import SettingError, StateError

SETTINGS_FILE = "settings.json"
_HIDDEN = "***"  # stands for the password


def kept_database(folder: Path) -> str | None:
    """URL of the database in the kept settings; None if it is in the folder, or nothing is kept."""
    path = folder / SETTINGS_FILE
    if not path.is_file():
        return None
    try:
        url = json.loads(path.read_text(encoding="utf-8")).get("database")
    except (OSError, ValueError, AttributeError) as error:
        raise StateError(f"{path} cannot be read ({error}). Start the service again.") from error
    return None if url is None else str(url)


def check_password(url: str | None) -> None:
    """Raise `SettingError` if a URL was kept without its password."""
    if url is not None and _HIDDEN in url:
        raise SettingError(
            f"This service keeps its questions in {url}, whose password is not kept. Give the "
            f"whole URL with --database or in the variable ATTAKIT_DATABASE."
        )
