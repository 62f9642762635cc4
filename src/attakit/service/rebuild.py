"""`attakit rebuild`: restore a learner whose checkpoint is lost or damaged."""

from __future__ import annotations

from pathlib import Path

from attakit.service.inputs import Inputs
from attakit.service.learner.rebuild import Rebuilt, rebuild_memory
from attakit.service.models import source_model
from attakit.service.saved_settings import find_settings, open_service


def rebuild(folder: Path, database: str | None = None) -> Rebuilt:
    """Rebuild the learner's memory of a stopped service from its log of turns.

    Parameters
    ----------
    folder
        The service's folder.
    database
        The URL of its database, if it is not in the folder.
    """
    settings = find_settings(folder)
    if database is not None:
        settings = settings.model_copy(update={"database": database})
    decode = Inputs(settings.input, pixels=settings.server.pixels).decode
    with open_service(settings, new=False) as storage:
        return rebuild_memory(settings, storage, source_model(settings), decode)
