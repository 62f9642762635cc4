"""Models of a service: the source model as it was trained, and the versions made from it."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.build.construct import import_named
from attakit.errors import ModelError, SettingError
from attakit.nn.classifier import Classifier
from attakit.nn.devices import choose_device, prepare
from attakit.nn.named import OWN_MODELS, named_model
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
    return _placed(module, settings)


def version_model(settings: ServiceSettings, file: str) -> Classifier:
    """A version of the model, from its file in the folder of versions."""
    module = _architecture(settings)
    load_weights(module, version_path(settings, file))
    return _placed(module, settings)


def version_path(settings: ServiceSettings, file: str) -> Path:
    """Where the weights of a version are."""
    return settings.folder / VERSIONS / file


def _architecture(settings: ServiceSettings) -> nn.Module:
    """The model without its training: by name, or from a function of the user's."""
    table = settings.model
    if ":" in table.name:
        return _imported(table.name)
    usual = settings.input.channels == 3 and table.name not in OWN_MODELS
    return named_model(
        table.name,
        classes=len(settings.classes),
        channels=None if usual else settings.input.channels,
        image_size=table.image_size,
    )


def _imported(name: str) -> nn.Module:
    """What a class or function of the user's returns, called without arguments."""
    build = import_named(name, "model")
    try:
        model = build()
    except Exception as error:  # code of the user's may raise anything
        raise ModelError(
            f"model.name: {name!r} is called without arguments and must return the model, but it "
            f"fails ({type(error).__name__}: {error}). Name a function that needs no arguments."
        ) from error
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"model.name: {name!r} must return a torch.nn.Module, got {type(model).__name__}."
        )
    return model


def _placed(module: nn.Module, settings: ServiceSettings) -> Classifier:
    classifier = Classifier(module, features=settings.model.features)
    return prepare(classifier.eval(), choose_device(settings.model.device))
