"""Versions of a service, as models that can be exported."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.build.exportable import Exportable
from attakit.errors import SettingError, StateError
from attakit.nn.export import ModelFacts
from attakit.service.blobs import open_blobs
from attakit.service.inputs import Inputs
from attakit.service.models import VERSIONS, version_model
from attakit.service.saved_settings import find_settings, open_service
from attakit.service.storage import Storage, Version
from attakit.settings.service import ServiceSettings


def service_model(
    place: Path, number: int | None = None, database: str | None = None
) -> Exportable:
    """Return a version of a service's model, by default the served one, and how to use it.

    `place` is the service's folder or file; `database` replaces the URL in the settings.
    """
    settings = find_settings(place)
    with open_service(settings, database) as storage:
        return stored_model(settings, storage, _find_version(storage, place, number))


def stored_model(settings: ServiceSettings, storage: Storage, version: Version) -> Exportable:
    """Return a version of a service's model; `StateError` if its weights are gone."""
    blobs = open_blobs(settings, storage, VERSIONS)
    if version.file not in blobs.names():
        raise StateError(
            f"The weights of version {version.number} are gone: only the newest versions are "
            f"kept (gate.keep_versions). Export another version."
        )
    model: nn.Module = version_model(settings, blobs, version).model
    return model, _describe(settings, version)


def _find_version(storage: Storage, place: Path, number: int | None) -> Version:
    known = {version.number: version for version in storage.versions.all()}
    if number is None:
        current = storage.versions.current()
        if current is None:
            raise StateError(f"The service in {place} has promoted no version yet. Start it once.")
        number = current.version
    if number not in known:
        known_numbers = ", ".join(map(str, sorted(known))) or "none"
        raise SettingError(
            f"The service in {place} has no version {number}. Its versions: {known_numbers}."
        )
    return known[number]


def _describe(settings: ServiceSettings, version: Version) -> ModelFacts:
    table = settings.input
    is_image = table.kind == "image"
    return ModelFacts(
        model=settings.model.name,
        classes=settings.classes,
        shape=Inputs(table).shape,
        image_size=settings.model.image_size,
        mean=table.mean[: table.channels] if is_image else None,
        std=table.std[: table.channels] if is_image else None,
        origin=f"version {version.number} of a service, after {version.labels} labels",
        version=version.number,
        vocabulary=table.vocabulary if table.kind == "text" else None,
    )
