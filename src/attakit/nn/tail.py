"""The last stages of a network. They run from stored activations, and can be trained.

The first stage always stays fixed: it shows the style of a sample, and changing it would lose
everything known about styles.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from attakit.errors import DoesNotApply, ModelError, SettingError
from attakit.nn.blended import stop_blending
from attakit.nn.classifier import Classifier
from attakit.nn.depths import pooled, unit_rows, watching
from attakit.nn.row_norm import LayerRows, Pair, normalised_by
from attakit.nn.split import Split, find_split
from attakit.nn.trainable import SMALL, find_stages, trainable_parameters
from attakit.records import Prediction

KEPT_BYTES = 20_000  # per packed sample; a network that needs more is not trained
_LARGEST = 6e4  # largest value in half precision
_PROBE = 2


@dataclass(frozen=True, slots=True)
class Kept:
    """What is stored of samples so that the last stages can run on them again.

    Parameters
    ----------
    entry
        Activations at the beginning of the tail.
    statistics
        For each batch-norm layer in the tail, means and variances of the samples.
    centre
        Vector that was subtracted from the features of each sample.
    """

    entry: Tensor  # (rows, *shape)
    statistics: tuple[Pair, ...]  # each (rows, channels)
    centre: Tensor  # (rows, dim)

    def take(self, places: Tensor) -> Kept:
        pairs = tuple((mean[places], variance[places]) for mean, variance in self.statistics)
        return Kept(self.entry[places], pairs, self.centre[places])

    def moved(self, by: Sequence[Pair]) -> Kept:
        """Return the same samples under other weights, which move statistics in a known way."""
        pairs = tuple(
            (mean + distance, variance * ratio)
            for (mean, variance), (distance, ratio) in zip(self.statistics, by, strict=True)
        )
        return Kept(self.entry, pairs, self.centre)


@dataclass(frozen=True, slots=True)
class TailPass:
    """A pass through the tail: the prediction, with features of several depths, not centred.

    Parameters
    ----------
    prediction
        Logits, and the joined features of all depths.
    found
        For each batch-norm layer, mean and mean square of the channels of each sample.
    moved
        For each of them, how far means moved, and the ratio of variances. Empty if the weights are
        the source's.
    """

    prediction: Prediction
    found: tuple[Pair, ...]
    moved: tuple[Pair, ...]


class Tail:
    """The last stages of a network: where they begin, and how they run from there.

    Parameters
    ----------
    source
        A copy of the network with the source's weights and stored statistics, whose last stages
        have `requires_grad`.
    layer
        Name of the layer that the tail begins with.
    norms
        Names of the batch-norm layers in the tail.
    shape
        Shape of the activations of one sample.
    depths
        Names of layers whose inputs are features, in addition to the penultimate ones.
    empty
        A batch of no samples, with the shape and type of the inputs.
    """

    def __init__(
        self,
        source: Classifier,
        layer: str,
        norms: Sequence[str],
        shape: Sequence[int],
        depths: Sequence[str],
        empty: Tensor,
    ) -> None:
        self.source = source
        self.layer = layer
        self.norms = tuple(norms)
        self.shape = tuple(shape)
        self.depths = tuple(depths)
        self.empty = empty

    @property
    def trained_names(self) -> list[str]:
        """Names of the parameters that train."""
        named = self.source.model.named_parameters()
        return [name for name, parameter in named if parameter.requires_grad]

    def norm_layers(self, classifier: Classifier) -> list[_BatchNorm]:
        found = [classifier.model.get_submodule(name) for name in self.norms]
        return [layer for layer in found if isinstance(layer, _BatchNorm)]

    def pack(self, kept: Kept) -> Tensor:
        """Return one row of half precision per sample, for `unpack`."""
        parts = [kept.entry.flatten(1)]
        parts += [part for mean, variance in kept.statistics for part in (mean, variance.sqrt())]
        rows = torch.cat([*parts, kept.centre], dim=1)
        return rows.clamp(-_LARGEST, _LARGEST).half()

    def unpack(self, packed: Tensor) -> Kept:
        """Undo `pack`."""
        device = self.source.device
        rows = packed.to(device).float()
        size = int(torch.Size(self.shape).numel())
        widths = [layer.num_features for layer in self.norm_layers(self.source) for _ in "ab"]
        widths = [size, *widths, rows.shape[1] - size - sum(widths)]
        entry, *parts, centre = torch.split(rows, widths, dim=1)
        pairs = zip(parts[::2], parts[1::2], strict=True)
        statistics = tuple((mean, deviation.square()) for mean, deviation in pairs)
        return Kept(entry.reshape(len(rows), *self.shape), statistics, centre)

    def run(
        self, classifier: Classifier, kept: Kept, usual: Sequence[Pair] | None = None
    ) -> TailPass:
        """Run the last stages of a network, each sample with its own statistics.

        Parameters
        ----------
        classifier
            The source, or a copy of it with other weights in the tail.
        kept
            The samples.
        usual
            The result of a pass with the source's weights. With it, statistics follow the weights.
        """
        watched = {name: classifier.model.get_submodule(name) for name in self.depths}
        seen: dict[str, Tensor] = {}
        rows = [
            LayerRows(*pair, None if usual is None else usual[place])
            for place, pair in enumerate(kept.statistics)
        ]
        split = Split(classifier, self.layer, self.empty)
        with (
            normalised_by(self.norm_layers(classifier), rows),
            watching(watched, seen.__setitem__),
        ):
            prediction: Prediction = split(kept.entry)
        features = unit_rows([prediction.features, *pooled(watched, seen, len(kept.entry))])
        found = tuple(each.found for each in rows if each.found is not None)
        moved = tuple(each.moved for each in rows if each.moved is not None)
        return TailPass(Prediction(prediction.logits, features), found, moved)

    def state_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "norms": list(self.norms),
            "shape": list(self.shape),
            "depths": list(self.depths),
            "empty": self.empty,
        }

    @staticmethod
    def from_state(source: Classifier, state: Mapping[str, Any]) -> Tail:
        """Restore the tail of a network that `plain_copy` made."""
        _let_last_stages_train(source)
        return Tail(source, **{**state, "empty": state["empty"].to(source.device)})


def find_tail(classifier: Classifier, inputs: Tensor, depths: Sequence[str]) -> Tail | None:
    """Find the last stages that can be trained from at most 20 kB per sample (`Kept`).

    In a network with less than a million parameters these are all stages except the first. In a
    larger one they are those with half of the parameters. The result is None if they cannot run
    separately, if they need more than 20 kB, or if only the last layer is left.

    Parameters
    ----------
    classifier
        The classifier. It is not changed.
    inputs
        At least one sample.
    depths
        Names of layers whose inputs are features, in addition to the penultimate ones.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> find_tail(Classifier(SmallCNN()), torch.zeros(1, 1, 28, 28), ["block3.0"]).layer
    'block2'
    """
    source = plain_copy(classifier)
    if not _let_last_stages_train(source):
        return None
    split = find_split(source, inputs[:_PROBE])
    if split.is_whole or split.layer == source.head_name:
        return None
    return _checked(split, inputs[:_PROBE], depths)


def plain_copy(classifier: Classifier) -> Classifier:
    """Copy a classifier without its memory of a stream: it uses stored statistics."""
    stream = classifier.stream
    left_out = [] if stream is None else [*stream.modules(), stream.styles]
    network = copy.deepcopy(classifier.model, {id(each): each for each in left_out})
    stop_blending(network)
    return Classifier(network, features=classifier.features).eval().requires_grad_(False)


def _let_last_stages_train(source: Classifier) -> bool:
    """Choose what trains; False if only the last layer is left."""
    stages = find_stages(source.model)
    small = sum(parameter.numel() for parameter in source.parameters()) < SMALL
    if len(stages) < 3:
        return False
    try:
        trainable_parameters(source, f"last:{len(stages) - 1}" if small else "auto")
    except (DoesNotApply, ModelError, SettingError):
        return False
    return not any(parameter.requires_grad for parameter in stages[0])


def _checked(split: Split, probe: Tensor, depths: Sequence[str]) -> Tail | None:
    """Return the tail that begins at a split, unless it is too large or lacks some depths."""
    norms = {
        name: layer
        for name, layer in split.classifier.model.named_modules()
        if isinstance(layer, _BatchNorm) and layer.running_mean is not None
    }
    inside: dict[str, Tensor] = {}

    def note(name: str, tensor: Tensor) -> None:
        if len(tensor) == len(probe):
            inside[name] = tensor

    deep = {name: split.classifier.model.get_submodule(name) for name in depths}
    with torch.no_grad():
        _, entry = split.run(probe)
        with watching({**norms, **deep}, note):
            features = split(entry).features
    if not deep.keys() <= inside.keys():
        return None
    names = [name for name in norms if name in inside]
    centre = [features, *pooled(deep, inside, len(probe))]
    values = entry[0].numel() + 2 * sum(norms[name].num_features for name in names)
    if 2 * (values + sum(each.shape[1] for each in centre)) > KEPT_BYTES:  # half precision
        return None
    return Tail(split.classifier, split.layer, names, entry.shape[1:], depths, split.empty.clone())
