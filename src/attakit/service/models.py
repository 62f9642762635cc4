"""Models of a service: the trained source model, and the versions made from it."""

from __future__ import annotations

from torch import nn

from attakit.build.construct import find_named
from attakit.build.imported import is_import_path
from attakit.build.methods import build_method
from attakit.build.models import build_model, place_model
from attakit.errors import SettingError
from attakit.methods import METHODS
from attakit.nn.classifier import Classifier
from attakit.nn.weights import load_weights
from attakit.protocols import HasServiceSettings, Method
from attakit.select.label_rate import LabelRate
from attakit.service.blobs import Blobs
from attakit.service.learner.candidates import SOURCE_FILE, load_version
from attakit.service.storage import Version
from attakit.settings.service import ServiceSettings

VERSIONS, CHECKPOINTS = "versions", "checkpoints"  # kinds of blobs


def source_model(settings: ServiceSettings) -> Classifier:
    """Return the model that the service starts with, on its device."""
    table = settings.model
    module = _architecture(settings)
    if table.weights is not None:
        load_weights(module, table.weights)
    elif not is_import_path(table.name):
        raise SettingError(
            f"model.weights is missing: the file with the trained weights of {table.name}. "
            f"`attakit pretrain` writes one."
        )
    return place_model(module, settings.model)


def live_method(
    settings: ServiceSettings, source: Classifier, rate: LabelRate | None = None
) -> Method:
    """Return the method that the service runs, with its defaults for a service."""
    table = settings.method
    kind = find_named(table.name, METHODS, "method")
    if isinstance(kind, type) and issubclass(kind, HasServiceSettings):
        table = table.model_copy(update={**kind.service_settings(), **table.settings})
    return build_method(table, source, settings.seed, rate=rate, question=settings.labels.question)


def version_model(settings: ServiceSettings, blobs: Blobs, version: Version) -> Classifier:
    """Load a version of the model, from the files of versions alone."""
    # Not from `model.weights`: that file may have moved.
    network = _architecture(settings)
    with blobs.reading(SOURCE_FILE) as source:
        if source.exists():
            load_weights(network, source)
    with blobs.reading(version.file) as path:
        return load_version(place_model(network, settings.model), version, path)


def _architecture(settings: ServiceSettings) -> nn.Module:
    return build_model(settings.model, len(settings.classes), settings.input.channels)
