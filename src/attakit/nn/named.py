"""Models by name: attakit's small ones, and timm models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from attakit.errors import ModelError, UnknownName, check_count, nearest_hint
from attakit.nn.seeding import seeded
from attakit.nn.small import SmallCNN
from attakit.nn.small_vectors import SmallMLP, SmallText
from attakit.nn.vision import import_timm
from attakit.nn.weights import load_weights

OWN_MODELS: dict[str, Callable[..., nn.Module]] = {
    "small_cnn": SmallCNN,
    "small_mlp": SmallMLP,
    "small_text": SmallText,
}
# The name of the input width in each of them.
_WIDTHS = {"small_cnn": "channels", "small_mlp": "inputs", "small_text": "vocabulary"}
_TIMM_NAMES = {"channels": "in_chans", "image_size": "img_size"}


def named_model(
    name: str,
    *,
    classes: int,
    weights: Path | str | None = None,
    channels: int | None = None,
    image_size: int | None = None,
    seed: int = 0,
) -> nn.Module:
    """Build a model by name. Nothing is ever downloaded: weights come from a local file.

    Parameters
    ----------
    name
        "small_cnn", "small_mlp", "small_text", or any timm model (extra `models`).
    classes
        Number of classes.
    weights
        File to load. If its last layer is missing or has another number of classes, a new one is
        kept.
    channels
        Channels of the input images; by default the model's own. For "small_mlp", the numbers in a
        row; for "small_text", the number of token ids.
    image_size
        Side of the input images, for models that need it (a ViT); by default theirs.
    seed
        Seed of the initial weights.

    Examples
    --------
    >>> model = named_model("small_cnn", classes=4)
    >>> model.head.out_features
    4
    """
    check_count("named_model", "classes", classes, at_least=1)
    options = {"channels": channels, "image_size": image_size}
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        check_count("named_model", option, value, at_least=1)
    with seeded(seed, "weights"):
        if name in OWN_MODELS:
            model = OWN_MODELS[name](**{"classes": classes, _WIDTHS[name]: channels or 1})
        else:
            model = _build_timm(name, classes, given)
    if weights is not None:
        load_weights(model, weights, allow_new_head=True)
    return model


def check_model_name(name: str) -> None:
    """Raise `UnknownName` with the nearest names if no model has this name."""
    if name not in OWN_MODELS and not (timm := import_timm()).is_model(name):
        raise _unknown_model(name, timm.list_models())


def _build_timm(name: str, classes: int, options: dict[str, int]) -> nn.Module:
    check_model_name(name)
    timm = import_timm()
    theirs = {_TIMM_NAMES[option]: value for option, value in options.items()}
    try:
        model: nn.Module = timm.create_model(name, pretrained=False, num_classes=classes, **theirs)
    except TypeError as error:
        raise ModelError(
            f"named_model: {name} does not take {' and '.join(options) or 'classes'} ({error}). "
            f"Leave image_size out for models that take images of any size."
        ) from error
    return model


def _unknown_model(name: str, known: list[str]) -> UnknownName:
    hint = nearest_hint(name, [*OWN_MODELS, *known], count=3)
    return UnknownName(
        f"Unknown model '{name}'.{hint} Known: {', '.join(OWN_MODELS)} and the {len(known)} timm "
        "models (timm.list_models() lists them)."
    )
