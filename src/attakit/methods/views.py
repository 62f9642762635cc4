"""A batch as the anchor head sees it, and the consequences for its questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attakit.errors import SettingError
from attakit.methods.lame import affinities, agree
from attakit.nn.class_mix import with_class_mix
from attakit.nn.domain_mean import DomainState
from attakit.nn.entropy import softmax_entropy
from attakit.nn.styles import Grouping
from attakit.queries import Query, SampleId
from attakit.records import Batch, LabelledRows, Prediction, Rows
from attakit.store.anchors import Anchors
from attakit.store.waiting import waiting_rows
from attakit.train.anchored import ResidualHead

_SMALLEST = 1e-8
_SMALL_BATCH = 8  # a smaller batch offers no choice: ask only about uncertain samples
_NEIGHBOURS = 5
EXPERTS = (0.98, 0.01, 0.01)  # their weights before there are labels
EXPERTS_IN_RUNS = (0.1, 0.45, 0.45)  # the same, where classes come in runs
_UNSURE = 0.7  # share of recent samples that must be surer


@dataclass(frozen=True, slots=True)
class View:
    """A batch with everything that the method computes for it.

    Parameters
    ----------
    prediction
        The prediction.
    features, offsets
        Features of several depths, centred, of length 1; and the network's logits.
    before, memory
        Probabilities before smoothing, of the batch and of recent samples.
    layers
        The layers whose inputs are the features.
    domain
        The domain's state after the batch.
    centre
        Vector that was subtracted from the features of each sample.
    drifted
        True if a new domain begins.
    said
        What each expert says.
    """

    prediction: Prediction
    features: Tensor  # (batch, dim)
    offsets: Tensor  # (batch, classes)
    before: Tensor  # (batch, classes)
    memory: Tensor  # (rows, classes)
    layers: Sequence[str]
    domain: DomainState
    centre: Tensor  # (batch, dim)
    drifted: bool
    said: Tensor  # (experts, batch, classes)


def unsure_places(view: View) -> list[int]:
    """Return the places of samples that may be asked about: all, if the batch offers a choice."""
    count = len(view.features)
    if count >= _SMALL_BATCH or len(view.memory) < 2 * _SMALL_BATCH:
        return list(range(count))
    bound = _entropy(view.memory).quantile(_UNSURE)
    return (_entropy(view.before) >= bound).nonzero().flatten().tolist()


def candidates_of(batch: Batch, view: View, places: Sequence[int]) -> Rows:
    """Return samples for a selector: with the prediction, not with the network's logits."""
    names = tuple(batch.samples[place] for place in places)
    logits = view.prediction.logits[places]
    return Rows(names, view.features[places], logits, logits.new_ones(len(names)))


def asked_places(batch: Batch, queries: Sequence[Query]) -> tuple[list[SampleId], list[int]]:
    """Return the samples in question, and their places in the batch."""
    asked = [query.sample for query in queries]
    return asked, places_of(batch, asked)


def expert_answers(own: Tensor, network: Prediction) -> Tensor:
    """Return probabilities by each of the `EXPERTS`: (experts, batch, classes).

    The method's own answer; the same after a look at the batch's mix of classes; and the network's,
    after agreement among similar samples (LAME). The last two are for streams whose classes come
    in runs.
    """
    alike = affinities(network.features, "rbf", _NEIGHBOURS)
    agreed = agree(network.logits.log_softmax(dim=1), alike).softmax(dim=1)
    return torch.stack([own, with_class_mix(own), agreed.to(own)])


def places_of(batch: Batch, samples: Sequence[SampleId]) -> list[int]:
    """Return the places of samples in a batch."""
    return [batch.samples.index(sample) for sample in samples]


def rows_without_inputs(
    batch: Batch, view: View, places: Sequence[int], kept: Tensor | None
) -> LabelledRows:
    """Return what to store of samples in question: features and network logits, no inputs."""
    names = tuple(batch.samples[place] for place in places)
    nothing = Batch(batch.step, names, view.features.new_zeros(len(places), 0))
    found = Prediction(view.offsets[places], view.features[places])
    return waiting_rows(nothing, found, kept)


def with_anchors(
    anchors: Anchors, head: ResidualHead, features: Tensor, chances: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the neighbours for smoothing: the given samples, and labelled ones.

    An answer that counts less than a sure one is mixed with what the head says.
    """
    if len(anchors) == 0:
        return features, chances
    rows = anchors.rows
    targets = rows.as_targets().to(chances)
    said = targets.shares / targets.shares.sum(dim=1, keepdim=True)  # possible classes alike
    if bool((targets.weights < 1).any()):
        own = head.chances(rows.features, rows.logits).to(chances)
        said = own.lerp(said, targets.weights.clamp(max=1)[:, None])
    return torch.cat([features, rows.features.to(features)]), torch.cat([chances, said])


def members_of(grouping: Grouping | None, like: Tensor) -> Tensor:
    """Return membership in style groups; one group for all if there are no styles."""
    return like.new_ones(len(like), 1) if grouping is None else grouping.members.to(like)


def layer_names(layers: object) -> list[str]:
    """Check the user's names of layers."""
    if isinstance(layers, str) or not isinstance(layers, Sequence):
        raise SettingError(f'AnchorHead: layers must be a list of names or "auto", got {layers!r}.')
    return [str(name) for name in layers]


def _entropy(chances: Tensor) -> Tensor:
    return softmax_entropy(chances.clamp(min=_SMALLEST).log())
