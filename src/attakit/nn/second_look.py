"""A second look at samples that seem to be from the source, at a deeper layer.

Behind the first convolution, many paintings look like photos. At a deeper layer of the source model
they differ clearly. So the first layer only says which samples are worth the second look.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attakit.errors import ModelError, nearest_hint
from attakit.nn.classifier import Classifier
from attakit.nn.gaussians import Card
from attakit.nn.shapes import as_rows
from attakit.nn.styles import Grouping, StyleGroups
from attakit.queries import SampleId

UNLIKELY = 1e-3  # a sample that is less likely from the source needs no second look


@dataclass(frozen=True, slots=True)
class Looked:
    """What a second look found.

    Parameters
    ----------
    home
        Probability of each sample to be from the source.
    places
        The samples that were looked at twice.
    grouping
        Their groups.
    """

    home: Tensor  # (batch,)
    places: Sequence[int]
    grouping: Grouping


class SecondLook:
    """Decides by deeper features which samples are from the source.

    It costs one pass of the source model, up to a deeper layer, for samples that seem to be from
    the source. Before there are enough of them, the first look counts.

    Parameters
    ----------
    source
        The source model; it is copied.
    layer
        Name of the layer whose inputs are the features.
    card
        Mean and covariance of these features over source samples.
    most, lasting
        As for `StyleGroups`.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> source, inputs = Classifier(SmallCNN()).eval(), torch.rand(40, 1, 28, 28)
    >>> features = features_at(source, "block3.0", inputs)
    >>> second = SecondLook(source, "block3.0", Card.of(features.double().numpy()))
    >>> bool((second.after(torch.ones(40), inputs).home > 0.5).all())
    True
    """

    def __init__(
        self, source: Classifier, layer: str, card: Card, *, most: int = 4, lasting: bool = False
    ) -> None:
        self.source = copy.deepcopy(source)
        self.layer = layer
        self.groups = StyleGroups(most=most, card=card, lasting=lasting)

    def after(self, home: Tensor, inputs: Tensor) -> Looked | None:
        """Look at samples again, without remembering them; None if no sample needs it.

        Parameters
        ----------
        home
            Probability of each sample to be from the source, by the first look.
        inputs
            The samples.
        """
        likely = (home > UNLIKELY).nonzero().flatten()
        if len(likely) == 0:
            return None
        found = self.groups.after(features_at(self.source, self.layer, inputs[likely]))
        if found.state.source is not None:
            home = torch.zeros_like(home).index_put_((likely,), found.home.to(home))
        return Looked(home, likely.tolist(), found)

    def keep(self, looked: Looked, samples: Sequence[SampleId]) -> None:
        """Remember the features of samples that were looked at twice."""
        names = [samples[place] for place in looked.places] if samples else ()
        self.groups.keep(looked.grouping, names)

    def forget(self, samples: Collection[SampleId]) -> None:
        self.groups.forget(samples)

    def state_dict(self) -> dict[str, Any]:
        return self.groups.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.groups.load_state_dict(state)


def features_at(classifier: Classifier, name: str, inputs: Tensor) -> Tensor:
    """Return one row of features per sample: the input of a layer. The pass ends there.

    Parameters
    ----------
    classifier
        The model. It is not changed.
    name
        Name of the layer.
    inputs
        One row per sample.
    """
    layers = dict(classifier.model.named_modules())
    if name not in layers:
        raise ModelError(
            f"source card: the model has no layer {name!r}.{nearest_hint(name, list(layers))} Make "
            f"a card for this model with `attakit card`."
        )

    def look(layer: nn.Module, given: tuple[Tensor, ...]) -> None:
        raise SeenEnough(as_rows(layer, given[0], len(inputs)).float())

    return seen_at(classifier, layers[name].register_forward_pre_hook(look), inputs)


def seen_at(classifier: Classifier, hook: Any, inputs: Tensor) -> Tensor:
    """Run a model until a hook has seen enough, and return what it saw. The hook is removed."""
    try:
        with torch.no_grad():
            classifier(inputs.to(classifier.device))
    except SeenEnough as seen:
        return seen.rows
    finally:
        hook.remove()
    raise ModelError("source card: a layer that it describes did not run. Make a new card.")


class SeenEnough(Exception):
    """Ends a pass early; not an error."""

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.rows = rows
