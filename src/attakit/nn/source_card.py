"""The source card: a few kilobytes that describe how source samples look to a model."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from attakit.errors import ModelError, SettingError
from attakit.files import atomic_write
from attakit.nn.blended import first_convolution
from attakit.nn.classifier import Classifier
from attakit.nn.gaussians import Card
from attakit.nn.stored_card import StoredStatistics, stored_statistics
from attakit.nn.stream_memory import sampled_styles

CARD_SAMPLES = 400  # more hardly change the card
_BATCH = 100
_NAMES = ("style_mean", "style_covariance")


def make_card(model: nn.Module, inputs: Tensor) -> Card:
    """Describe source samples: mean and covariance of their style vectors.

    Parameters
    ----------
    model
        The source model. It is not changed.
    inputs
        A sample of source data, a few hundred rows. Labels are not needed.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> make_card(SmallCNN(), torch.rand(20, 1, 28, 28)).mean.shape
    (32,)
    """
    classifier = model if isinstance(model, Classifier) else Classifier(model)
    if first_convolution(classifier) is None:
        raise ModelError(
            "source card: the model has no convolution, so samples have no style to describe. "
            "Leave the card out."
        )
    found = [styles_of(classifier, batch) for batch in torch.split(inputs, _BATCH)]
    return Card.of(torch.cat(found).double().cpu().numpy())


def styles_of(classifier: Classifier, inputs: Tensor) -> Tensor:
    """Return the style vector of each sample. The pass ends behind the first convolution.

    Parameters
    ----------
    classifier
        The source model, which must have a convolution. It is not changed.
    inputs
        One row per sample.
    """
    first = first_convolution(classifier)
    assert first is not None, "only convolutions show styles"

    def look(_layer: nn.Module, _inputs: object, outputs: Tensor) -> None:
        raise _SeenEnough(sampled_styles(outputs))

    hook = first.register_forward_hook(look)
    try:
        with torch.no_grad():
            classifier(inputs.to(classifier.device))
    except _SeenEnough as seen:
        return seen.styles
    finally:
        hook.remove()
    raise ModelError("source card: the first convolution of the model did not run.")


class _SeenEnough(Exception):
    """Ends a pass early; not an error."""

    def __init__(self, styles: Tensor) -> None:
        super().__init__()
        self.styles = styles


def card_file(weights: Path) -> Path:
    """Return the path of the card of a weights file.

    >>> card_file(Path("photo.safetensors")).name
    'photo.card.safetensors'
    """
    return weights.with_suffix(".card.safetensors")


def save_card(card: Card, path: Path) -> None:
    """Write a card."""
    tensors = dict(zip(_NAMES, map(torch.from_numpy, (card.mean, card.covariance)), strict=True))
    with atomic_write(path) as draft:
        save_file({name: each.float() for name, each in tensors.items()}, draft)


def load_card(path: str | Path) -> Card:
    """Read a card that `save_card` wrote."""
    try:
        tensors = load_file(path)
        return Card(*(tensors[name].double().numpy() for name in _NAMES))
    except (OSError, SafetensorError, KeyError) as error:
        raise ModelError(
            f"source card: {path} cannot be read ({error}). Make one with `attakit card`."
        ) from error


def read_or_make_card(
    model: nn.Module, given: str | Path | None, source_inputs: Tensor | None
) -> Card | StoredStatistics | None:
    """Return the card in a file, or with "auto" one made from source inputs; None for None.

    "stored" gives the batch-norm statistics, from which a card can be guessed.
    """
    if given is None:
        return None
    if given == "stored":
        return _stored(model)
    if given != "auto":
        return load_card(given)
    if source_inputs is None:
        raise SettingError(
            'source_card: "auto" makes the card from source_inputs, which are missing. '
            "Pass some, or name a file that `attakit card` wrote."
        )
    return make_card(model, source_inputs)


def _stored(model: nn.Module) -> StoredStatistics:
    found = stored_statistics(model)
    if found is None:
        raise ModelError(
            'source_card: "stored" needs a batch norm after the first convolution, but the model '
            "has none. Make a card with `attakit card`, or leave it out."
        )
    return found
