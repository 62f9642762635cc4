"""Features from several depths of a network, in the same forward pass as its logits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from attakit.errors import ModelError, nearest_hint
from attakit.nn.classifier import Classifier
from attakit.nn.shapes import as_rows
from attakit.records import Prediction

_PROBE = 2  # samples for the pass that finds the layers
_TOKEN_DEPTHS = (0.75, 0.875)  # depths of features in a transformer, as shares of its depth
_WIDEST = 2  # tokens wider than this many times the features are the inside of an MLP block


@dataclass(frozen=True, slots=True)
class DepthPrediction:
    """One forward pass: the classifier's own prediction, and features from several depths.

    Parameters
    ----------
    prediction
        What the classifier returns.
    features
        The penultimate features, then those of each named layer, each part of length 1.
    """

    prediction: Prediction
    features: Tensor  # (batch, dim)


def predict_with_depths(
    classifier: Classifier, inputs: Tensor, layers: Sequence[str]
) -> DepthPrediction:
    """Run the classifier once and return its prediction with features from several depths.

    Parameters
    ----------
    classifier
        The classifier. It runs without gradients and is not changed.
    inputs
        A batch of at least one sample.
    layers
        Names of layers whose input counts as features, for example from `find_depths`. Positions of
        an image and tokens of a text are averaged.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(),
    ...                       nn.Linear(5, 3))
    >>> found = predict_with_depths(Classifier(model), torch.ones(2, 4), ["2"])
    >>> found.prediction.logits.shape, found.features.shape
    (torch.Size([2, 3]), torch.Size([2, 11]))
    """
    watched = {name: _layer(classifier.model, name) for name in layers}
    seen: dict[str, Tensor] = {}
    with torch.no_grad(), watching(watched, seen.__setitem__):
        prediction: Prediction = classifier(inputs)
        parts = pooled(watched, seen, len(inputs))
    return DepthPrediction(prediction, unit_rows([prediction.features, *parts]))


def pooled(layers: Mapping[str, nn.Module], seen: Mapping[str, Tensor], rows: int) -> list[Tensor]:
    """Return one row of features per sample for each layer, from the layer's input."""
    missing = [name for name in layers if name not in seen]
    if missing:
        raise ModelError(
            f"depths: the layer {missing[0]!r} did not run on a tensor, so it has no features. "
            f"Name another layer."
        )
    return [as_rows(layer, seen[name], rows).float() for name, layer in layers.items()]


def unit_rows(parts: Sequence[Tensor]) -> Tensor:
    """Join the features of several layers, each part of length 1.

    >>> unit_rows([torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0]])])
    tensor([[0.6000, 0.8000, 1.0000]])
    """
    return torch.cat([F.normalize(part, dim=1) for part in parts], dim=1)


def find_depths(classifier: Classifier, inputs: Tensor) -> tuple[str, ...]:
    """Name up to two layers whose inputs are good features in addition to the penultimate ones.

    In a convolutional network they are the end of the second to last stage and the middle of the
    last stage. A stage is a run of layers at one resolution. In a transformer they are at three
    quarters and seven eighths of the depth, in an MLP the middle and the last hidden layer. For a
    model with one hidden layer the result is empty.

    Parameters
    ----------
    classifier
        The model. It runs once on the first samples.
    inputs
        A batch of at least one sample.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> find_depths(Classifier(SmallCNN()).eval(), torch.zeros(2, 1, 28, 28))
    ('block3.0', 'hidden.2')
    """
    probe = inputs[:_PROBE]
    layers = {
        name: layer
        for name, layer in classifier.model.named_modules()
        if isinstance(layer, (nn.Linear, _ConvNd))
    }
    ran: dict[str, Tensor] = {}
    with torch.no_grad(), watching(layers, ran.__setitem__):
        features = classifier(probe).features
    points = _distinct(ran, layers, classifier.head, probe)
    return _choose(points, widest=_WIDEST * features.shape[1])


@dataclass(frozen=True, slots=True)
class _Point:
    """A tensor in the network, identified by the layer that reads it."""

    layer: str
    stage: tuple[int, ...]  # layers with the same one work at the same resolution
    width: int
    tokens: bool


def _distinct(
    ran: Mapping[str, Tensor], layers: Mapping[str, nn.Module], head: nn.Module, inputs: Tensor
) -> list[_Point]:
    """Return inputs of layers in the order of the pass: each tensor once, without the raw batch."""
    known = {_memory(inputs)}
    points = []
    for name, tensor in ran.items():
        if layers[name] is head or tensor.ndim < 2 or _memory(tensor) in known:
            continue
        known.add(_memory(tensor))
        points.append(_point(name, layers[name], tensor))
    return points


def _point(name: str, layer: nn.Module, tensor: Tensor) -> _Point:
    if isinstance(layer, nn.Linear):
        return _Point(name, tuple(tensor.shape[1:-1]), tensor.shape[-1], tokens=tensor.ndim > 2)
    return _Point(name, tuple(tensor.shape[2:]), tensor.shape[1], tokens=False)


def _choose(points: Sequence[_Point], widest: int) -> tuple[str, ...]:
    tokens = [point.layer for point in points if point.tokens and point.width <= widest]
    if tokens:
        places = [min(int(depth * len(tokens)), len(tokens) - 1) for depth in _TOKEN_DEPTHS]
        return tuple(dict.fromkeys(tokens[place] for place in places))
    stages: dict[tuple[int, ...], list[str]] = {}
    for point in points:
        stages.setdefault(point.stage, []).append(point.layer)
    *earlier, last = stages.values() if stages else [[]]
    chosen = [*(earlier[-1][-1:] if earlier else ()), *last[len(last) // 2 :][:1]]
    if not earlier:
        chosen += last[-1:]
    return tuple(dict.fromkeys(chosen))


def _memory(tensor: Tensor) -> int:
    # Views such as flatten() share memory with their base.
    return tensor.untyped_storage().data_ptr()


def _layer(model: nn.Module, name: str) -> nn.Module:
    layers: dict[str, nn.Module] = dict(model.named_modules())
    if not name or name not in layers:
        raise ModelError(
            f"depths: the model has no layer named {name!r}.{nearest_hint(name, list(layers))}"
        )
    return layers[name]


@contextmanager
def watching(
    layers: Mapping[str, nn.Module], note: Callable[[str, Tensor], None]
) -> Iterator[None]:
    """Record the first input tensor of each layer by the layer's name, inside the block."""

    def hook(name: str) -> Callable[..., None]:
        def see(_layer: nn.Module, given: tuple[object, ...], named: dict[str, object]) -> None:
            tensors = [each for each in (*given, *named.values()) if isinstance(each, Tensor)]
            if tensors:
                note(name, tensors[0])

        return see

    hooks = [
        layer.register_forward_pre_hook(hook(name), with_kwargs=True)
        for name, layer in layers.items()
    ]
    try:
        yield
    finally:
        for each in hooks:
            each.remove()
