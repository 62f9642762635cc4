"""Files of models with a head: complete, or only the difference from the source."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from attakit.errors import ModelError
from attakit.nn.export_formats import FACTS
from attakit.nn.frozen_head import NETWORK, FrozenHead
from attakit.nn.weight_files import read_tensors
from attakit.nn.weights import check_tensors, load_weights, save_tensors

HEAD_LAYERS = "head_layers"


def difference(model: FrozenHead, source: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of a model that its source network lacks or has with other values.

    >>> layer = nn.Linear(2, 2)
    >>> list(difference(FrozenHead(layer), layer))
    []
    """
    known = {f"{NETWORK}{name}": tensor for name, tensor in source.state_dict().items()}
    return {
        name: tensor
        for name, tensor in model.state_dict().items()
        if name not in known or not torch.equal(tensor, known[name])
    }


def save_difference(
    model: FrozenHead, source: nn.Module, path: Path, *, sync: bool = False
) -> None:
    """Save what a model adds to its source network, as safetensors; `load_model` reads it."""
    metadata = {FACTS: json.dumps({HEAD_LAYERS: model.layers})}
    save_tensors(difference(model, source), path, sync=sync, metadata=metadata)


def load_model(source: nn.Module, path: Path) -> nn.Module:
    """Load a model: the source network with the file's weights, or with the file's head.

    Parameters
    ----------
    source
        Provides the architecture, and weights that are not in the file. It is not changed.
    path
        A weights file, a file written by `save_difference`, or an exported model with a head.
    """
    layers = _head_layers(path)
    if layers is None:
        model = copy.deepcopy(source)
        load_weights(model, path)
        return model.eval()
    tensors = read_tensors(path)
    try:
        made = FrozenHead.restored(source, layers, tensors)
    except (AttributeError, RuntimeError, TypeError) as error:
        first_line = str(error).splitlines()[0]
        raise ModelError(
            f"load_model: {path} does not fit the model it should add a head to ({first_line}). "
            f"Use it with the source model it was made from."
        ) from error
    check_tensors(path, made.state_dict(), tensors)
    return made


def _head_layers(path: Path) -> tuple[str, ...] | None:
    """Return the layers that a file's head reads; None for a file of plain weights."""
    if path.suffix != ".safetensors" or not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get(FACTS)
        facts: Any = json.loads(text) if text else None
    except (SafetensorError, OSError, ValueError):
        return None  # reading the tensors gives the right error
    layers = facts.get(HEAD_LAYERS) if isinstance(facts, dict) else None
    return None if layers is None else tuple(map(str, layers))
