"""Parts of the program that need packages which not everybody has installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from attakit.errors import MissingExtra


def import_service(part: str) -> ModuleType:
    """Import a part of the live service, or say how to get what it needs.

    >>> import_service("saved_settings").__name__
    'attakit.settings.service'
    """
    try:
        return importlib.import_module(f"attakit.service.{part}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "attakit":
            raise
        raise MissingExtra(
            f"This command belongs to the live service, which needs the package {error.name}. "
            f"Install it with: pip install 'attakit[service]'"
        ) from error
