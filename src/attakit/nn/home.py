"""Samples that look like the source's, answered by the unchanged source model."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attakit.nn.classifier import Classifier
from attakit.nn.second_look import UNLIKELY
from attakit.nn.source_card import SourceCard, style_groups, styles_of
from attakit.nn.stored_card import StoredStatistics
from attakit.nn.styles import Grouping
from attakit.queries import SampleId
from attakit.records import Prediction

_SMALLEST = 1e-8


class HomeAnswers:
    """Gives each sample that looks like the source's the source model's answer.

    A method whose network trains needs it, because trained weights no longer fit the source's
    statistics. Only samples that look like the source's cost a pass of the source model.

    Parameters
    ----------
    source
        The source model, with its own statistics; it is copied.
    card
        What source samples look like to the model (see `attakit.nn.source_card`).
    styles
        Maximum number of styles that the stream may mix at a time.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> from attakit.nn.source_card import make_card
    >>> source, inputs = Classifier(SmallCNN()).eval(), torch.rand(40, 1, 28, 28)
    >>> home = HomeAnswers(source, make_card(source, inputs))
    >>> other = Prediction(torch.zeros(40, 10), torch.zeros(40, 8))
    >>> home.mixed_into(other, inputs).logits.shape
    torch.Size([40, 10])
    """

    def __init__(
        self, source: Classifier, card: SourceCard | StoredStatistics, *, styles: int = 4
    ) -> None:
        self.source = copy.deepcopy(source)
        self.groups = style_groups(self.source, card, most=styles)
        self.grouping: Grouping | None = None  # of the last batch

    def mixed_into(self, prediction: Prediction, inputs: Tensor) -> Prediction:
        """Return a prediction in which source samples have the source model's answer."""
        self.grouping = self.groups.after(styles_of(self.source, inputs), inputs)
        share = self.grouping.home.to(prediction.logits)
        at_home = (share > UNLIKELY).nonzero().flatten()
        if len(at_home) == 0:
            return prediction
        with torch.no_grad():
            own = self.source(inputs[at_home]).logits.softmax(dim=1)
        chances = prediction.logits.softmax(dim=1)
        chances[at_home] = chances[at_home].lerp(own, share[at_home, None])
        return replace(prediction, logits=chances.clamp(min=_SMALLEST).log())

    def keep(self, samples: Sequence[SampleId]) -> None:
        """Remember the styles of the last batch. Without this call nothing changes."""
        assert self.grouping is not None, "a batch comes first"
        self.groups.keep(self.grouping, samples)

    def forget(self, samples: Collection[SampleId]) -> None:
        self.groups.forget(samples)

    def state_dict(self) -> dict[str, Any]:
        return self.groups.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.groups.load_state_dict(state)
