"""Models of a service: the source model as it was trained, and the versions made from it."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.build.models import build_model, place_model
from attakit.errors import SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.weights import load_weights
from attakit.settings.service import ServiceSettings

VERSIONS = "versions"


def source_model(settings: ServiceSettings) -> Classifier:
    """The model that the service begins with, on its device."""
    table = settings.model
    module = _architecture(settings)
    if table.weights is not None:
        load_weights(module, table.weights)
    elif ":" not in table.name:
        raise SettingError(
            f"model.weights is missing: the file with the trained weights of {table.name}. "
            f"`attakit pretrain` writes one."
        )
    return place_model(module, settings.model)


def version_model(settings: ServiceSettings, file: str) -> Classifier:
    """A version of the model, from its file in the folder of versions."""
    module = _architecture(settings)
    load_weights(module, version_path(settings, file))
    return place_model(module, settings.model)


def version_path(settings: ServiceSettings, file: str) -> Path:
    """Where the weights of a version are."""
    return settings.folder / VERSIONS / file


def _architecture(settings: ServiceSettings) -> nn.Module:
    return build_model(settings.model, len(settings.classes), settings.input.channels)
