"""The source card: a small file that describes how source samples look to a model."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from attakit.errors import ModelError, SettingError
from attakit.files import atomic_write
from attakit.nn.blended import first_convolution
from attakit.nn.classifier import Classifier
from attakit.nn.depths import find_depths
from attakit.nn.gaussians import Card
from attakit.nn.second_look import SecondLook, SeenEnough, features_at, seen_at
from attakit.nn.stored_card import StoredStatistics, stored_statistics
from attakit.nn.stream_memory import sampled_styles
from attakit.nn.styles import StyleGroups
from attakit.nn.weights import make_room

CARD_SAMPLES = 400  # more hardly change the card
_BATCH = 100
_STYLES = ("style_mean", "style_covariance")
_DEEPER = ("deeper_mean", "deeper_covariance")
_LAYER = "deeper_layer"


@dataclass(frozen=True, slots=True)
class SourceCard:
    """What source samples look like to a model.

    Parameters
    ----------
    styles
        Their style vectors, behind the first convolution.
    deeper
        Their features at a deeper layer, for a second look. None if the model has no such layer, or
        if an earlier version made the card.
    layer
        Name of the layer whose inputs are these features.
    """

    styles: Card
    deeper: Card | None = None
    layer: str = ""

    def second_look(self, source: Classifier, *, most: int, lasting: bool) -> SecondLook | None:
        """Return the second look at samples of the source model; None if there is none."""
        if self.deeper is None:
            return None
        return SecondLook(source, self.layer, self.deeper, most=most, lasting=lasting)


def make_card(model: nn.Module, inputs: Tensor) -> SourceCard:
    """Describe source samples: mean and covariance of their style vectors and deeper features.

    Parameters
    ----------
    model
        The source model. It is not changed.
    inputs
        A sample of source data, a few hundred rows, prepared as for training but without random
        changes. Labels are not needed.

    Examples
    --------
    >>> from attakit.nn import SmallCNN
    >>> card = make_card(SmallCNN(), torch.rand(20, 1, 28, 28))
    >>> card.styles.mean.shape, card.layer, card.deeper.mean.shape
    ((32,), 'block3.0', (32,))
    """
    if not isinstance(inputs, Tensor) or len(inputs) < 2:
        given = tuple(inputs.shape) if isinstance(inputs, Tensor) else type(inputs).__name__
        raise ModelError(
            f"source card: inputs must be a tensor with a row for each source sample, got {given}. "
            "Pass at least 2, better a few hundred."
        )
    # A copy: a model in training mode would learn statistics from these passes.
    classifier = copy.deepcopy(model if isinstance(model, Classifier) else Classifier(model)).eval()
    if first_convolution(classifier) is None:
        raise ModelError(
            "source card: the model has no convolution, so samples have no style to describe. "
            "Leave the card out."
        )
    styles = _card_of(partial(styles_of, classifier), inputs)
    depths = find_depths(classifier, inputs[:_BATCH].to(classifier.device))
    if not depths:
        return SourceCard(styles)
    return SourceCard(
        styles, _card_of(partial(features_at, classifier, depths[0]), inputs), depths[0]
    )


def _card_of(look: Callable[[Tensor], Tensor], inputs: Tensor) -> Card:
    found = torch.cat([look(batch) for batch in torch.split(inputs, _BATCH)])
    if not bool(found.isfinite().all()):
        raise ModelError(
            "source card: the model gives NaN or infinity for these inputs. Check that they are "
            "prepared as for training."
        )
    return Card.of(found.double().cpu().numpy())


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
        raise SeenEnough(sampled_styles(outputs))

    return seen_at(classifier, first.register_forward_hook(look), inputs)


def card_file(weights: Path) -> Path:
    """Return the path of the card of a weights file.

    >>> card_file(Path("photo.safetensors")).name
    'photo.card.safetensors'
    """
    return weights.with_suffix(".card.safetensors")


def save_card(card: SourceCard, path: str | Path) -> None:
    """Write a card as safetensors, for the setting `source_card` of a method.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from attakit.nn import SmallCNN
    >>> card = make_card(SmallCNN(), torch.rand(20, 1, 28, 28))
    >>> with TemporaryDirectory() as folder:
    ...     save_card(card, Path(folder, "digits.card.safetensors"))
    ...     load_card(Path(folder, "digits.card.safetensors")).layer
    'block3.0'
    """
    make_room(Path(path))
    tensors = dict(zip(_STYLES, (card.styles.mean, card.styles.covariance), strict=True))
    if card.deeper is not None:
        tensors |= zip(_DEEPER, (card.deeper.mean, card.deeper.covariance), strict=True)
    with atomic_write(Path(path)) as draft:
        packed = {name: torch.from_numpy(each).float() for name, each in tensors.items()}
        save_file(packed, draft, metadata={_LAYER: card.layer})


def load_card(path: str | Path) -> SourceCard:
    """Read a card that `save_card` wrote."""
    try:
        with safe_open(path, framework="np") as file:
            names, layer = set(file.keys()), (file.metadata() or {}).get(_LAYER, "")
            tensors = {name: file.get_tensor(name).astype(np.float64) for name in names}
        styles = Card(*(tensors[name] for name in _STYLES))
        deeper = Card(*(tensors[name] for name in _DEEPER)) if layer else None
    except (OSError, SafetensorError, KeyError) as error:
        raise ModelError(
            f"source card: {path} cannot be read ({error}). Make one with `attakit card`."
        ) from error
    return SourceCard(styles, deeper, layer)


def read_or_make_card(
    model: nn.Module, given: str | Path | None, source_inputs: Tensor | None
) -> SourceCard | StoredStatistics | None:
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


def style_groups(
    source: Classifier,
    card: SourceCard | StoredStatistics | None,
    *,
    most: int,
    lasting: bool = False,
) -> StyleGroups:
    """Return style groups that know what a card says about source samples.

    Parameters
    ----------
    source
        The source model.
    card
        What `read_or_make_card` returned.
    most, lasting
        As for `StyleGroups`.
    """
    if not isinstance(card, SourceCard):
        return StyleGroups(most=most, card=card, lasting=lasting)
    second = card.second_look(source, most=most, lasting=lasting)
    return StyleGroups(most=most, card=card.styles, second=second, lasting=lasting)
