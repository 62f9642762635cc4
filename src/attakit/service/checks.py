"""Checks before a service starts. A wrong setting gives a one-line error and changes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from attakit.build.imported import check_outputs, check_repeatable
from attakit.errors import SettingError, StateError
from attakit.nn.classifier import Classifier
from attakit.protocols import ShowsModel
from attakit.service.blobs import Blobs, check_blobs, open_blobs
from attakit.service.inputs import Inputs
from attakit.service.learner.candidates import check_not_lost, check_not_older
from attakit.service.models import CHECKPOINTS, VERSIONS, live_method, source_model
from attakit.service.saved_settings import SETTINGS_FILE
from attakit.service.storage import Storage
from attakit.service.storage.database import database_url
from attakit.service.web.local import is_loopback
from attakit.settings.service import ServerTable, ServiceSettings

ID_FILE = "service.id"
FIRST_TOKEN = "admin"  # name of the token that the first start creates
_BATCH = 2


def check_model_fits(settings: ServiceSettings, source: Classifier) -> None:
    """Raise an error if model, inputs, classes and method do not fit together."""
    inputs = Inputs(settings.input, pixels=settings.server.pixels).blank(_BATCH)
    check_outputs(settings.model.name, source, inputs, settings.classes)
    if settings.model.weights is None:
        # The learner and every restart build the model again and must get the same one.
        check_repeatable(settings.model.name, source, source_model(settings))
    method = live_method(settings, source)
    if isinstance(method, ShowsModel):
        _ = method.adapted_model  # raises if the model cannot be served


def check_open(server: ServerTable) -> None:
    """Raise `SettingError` if other machines could reach a server that needs no token."""
    if server.open and not is_loopback(server.host):
        raise SettingError(
            f"server.open: {server.host} can be reached from other machines, so anyone "
            "could use the service without a token. Listen on 127.0.0.1, or use tokens."
        )


def make_first_token(settings: ServiceSettings, storage: Storage) -> str | None:
    """Return a new administrator token if one is needed and none was ever created.

    It can be shown only once, so call this when nothing can go wrong any more.
    """
    if settings.server.open:
        return None
    with storage.alone("start"):  # if several servers start together, one creates it
        there = storage.tokens.any()
        return None if there else storage.tokens.create(FIRST_TOKEN, "admin", "service")


def check_shareable(settings: ServiceSettings, command: str) -> None:
    """Raise `SettingError` if servers and learners cannot be separate processes."""
    url = database_url(settings.folder, settings.database)
    if url.get_backend_name() == "sqlite":
        raise SettingError(
            f"{command}: servers and learners share their records through PostgreSQL, but this "
            f"service is on SQLite. Set `database` to a URL like postgresql://user@host/name, or "
            f"use `attakit serve` alone, which learns too."
        )


def check_compatible(settings: ServiceSettings, storage: Storage) -> None:
    """Raise an error if the database belongs to another folder or another kind of service.

    Two learners on one database would mix their turns. Labels are stored as positions in the list
    of classes. A method and its inputs must fit the learner's checkpoint. The price of a question
    is not stored, so it must stay the same.
    """
    check_blobs(settings, storage)
    check_not_lost(open_blobs(settings, storage, VERSIONS), storage.versions)
    check_not_older(open_blobs(settings, storage, CHECKPOINTS), storage.turns)
    owner = storage.key_values.get("service")
    if owner is None and (settings.folder / SETTINGS_FILE).is_file():  # a start was successful
        raise StateError(
            f"There is a service in {settings.folder}, but it is not in the database. The "
            "right database was lost, or this is another one. Restore it, or use another folder."
        )
    name = _name(open_blobs(settings, storage, ""))
    if owner not in (None, name):
        raise StateError(
            f"The database belongs to a service in another folder than {settings.folder}, where "
            "its model versions are. Start with that folder, or use another database. For servers "
            "on several machines, set `files` to a place that all of them reach."
        )
    before, now = storage.key_values.get("classes"), list(settings.classes)
    if before not in (None, now):
        raise SettingError(
            f"classes: the service in {settings.folder} has the classes {', '.join(before)}, in "
            f"this order, got {', '.join(now)}. Stored labels would mean other classes. Keep the "
            "classes, or use another folder."
        )
    fixed = _fixed_settings(settings)
    _check_fixed(settings, storage, fixed)
    storage.key_values.set("service", name)
    storage.key_values.set("classes", now)
    for key, (_, value) in fixed.items():
        storage.key_values.set(key, value)


def _fixed_settings(settings: ServiceSettings) -> dict[str, tuple[str, Any]]:
    """Settings that must not change after the service has learned: key -> (name, value)."""
    return {
        "method": ("method.name", settings.method.name),
        "input": ("input", _input_facts(settings)),
        "cost": ("labels.answers", settings.labels.cost),
        "yes_no_price": ("labels.yes_no_price", settings.labels.yes_no_price),
    }


def _input_facts(settings: ServiceSettings) -> dict[str, Any]:
    """Return what defines an input. Column names are for people and may change."""
    texts = set() if settings.input.kind == "text" else {"tokenizer", "vocabulary", "length"}
    return settings.input.model_dump(mode="json", exclude={"columns", *texts})


def _check_fixed(
    settings: ServiceSettings, storage: Storage, fixed: Mapping[str, tuple[str, Any]]
) -> None:
    for key, (setting, now) in fixed.items():
        before = storage.key_values.get(key)
        if before is not None and before != now and storage.turns.last() >= 0:
            raise SettingError(
                f"{setting}: the service in {settings.folder} has learned with {before}, got "
                f"{now}. Its stored data would not fit. Keep the setting, or use another folder."
            )


def _name(blobs: Blobs) -> str:
    """Return the unique name of the service whose files these are; the first call creates it."""
    with blobs.reading(ID_FILE) as path:
        if path.exists():
            return path.read_text(encoding="utf-8").strip()
    name = uuid.uuid4().hex
    with blobs.writing(ID_FILE) as path:
        path.write_text(f"{name}\n", encoding="utf-8")
    return name
