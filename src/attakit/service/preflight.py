"""Check a service before it starts, so that a wrong setting is one line and changes nothing."""

from __future__ import annotations

import torch

from attakit.build.methods import build_method
from attakit.errors import ModelError
from attakit.nn.classifier import Classifier
from attakit.nn.weights import weights_hash
from attakit.protocols import ShowsModel
from attakit.service.inputs import Inputs
from attakit.service.models import source_model
from attakit.settings.service import ServiceSettings

_BATCH = 2


def check_model_fits(settings: ServiceSettings, source: Classifier) -> None:
    """Raise an error if model, inputs, classes and method do not fit together."""
    shape = Inputs(settings.input, pixels=settings.server.pixels).shape
    with torch.no_grad():
        logits = source(torch.zeros(_BATCH, *shape, device=source.device)).logits
    outputs, classes = logits.shape[1], len(settings.classes)
    if outputs != classes:
        raise ModelError(
            f"model.name: {settings.model.name} has {outputs} outputs, but there are {classes} "
            f"classes ({', '.join(settings.classes)}). Name one class for each output."
        )
    _check_repeatable(settings, source)
    method = build_method(settings.method, source, settings.seed)
    if isinstance(method, ShowsModel):
        _ = method.adapted_model  # one that cannot be served says so here


def _check_repeatable(settings: ServiceSettings, source: Classifier) -> None:
    """The learner and every restart build the model again, and must get the same one."""
    if settings.model.weights is None and weights_hash(source_model(settings)) != weights_hash(
        source
    ):
        raise ModelError(
            f"model.name: {settings.model.name} returns other weights each time it is called. Let "
            f"it load the trained ones, or name their file with model.weights."
        )
