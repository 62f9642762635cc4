"""Split a network at a layer: store its input, and later run only the rest.

Layers before the first one that trains give the same result in every pass. So samples for repeated
training store the activations at that layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attakit.errors import ModelError
from attakit.nn.classifier import Classifier
from attakit.nn.norm import NormPolicy
from attakit.records import Prediction

_MOST = 4  # relative to the inputs: larger activations cost more to store than they save
_PROBE = 2  # samples for the passes that find and check a split
_FAULTS = (ModelError, RuntimeError, TypeError, ValueError, IndexError, AssertionError)

Hook = Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...] | None]


class Split(nn.Module):
    """A classifier whose pass can begin at a layer, with the layer's input.

    It is called like the classifier, with activations instead of inputs. The layers before it still
    run, on an empty batch, which takes negligible time.

    Parameters
    ----------
    classifier
        The classifier. It is used directly, not copied.
    layer
        Name of the layer in the classifier's model. "" is the model itself: then the activations
        are the inputs.
    empty
        A batch of no samples, with the shape and type of the inputs.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    >>> split = Split(Classifier(model), "2", empty=torch.zeros(0, 4))
    >>> prediction, activations = split.run(torch.ones(5, 4))
    >>> activations.shape, torch.equal(split(activations).logits, prediction.logits)
    (torch.Size([5, 8]), True)
    """

    def __init__(self, classifier: Classifier, layer: str, empty: Tensor) -> None:
        super().__init__()
        self.classifier = classifier
        self.layer = layer
        self.empty = empty

    @property
    def norm(self) -> NormPolicy:
        return self.classifier.norm

    @property
    def is_whole(self) -> bool:
        """True if nothing can be skipped, so that activations are the inputs themselves."""
        return not self.layer

    def run(self, inputs: Tensor) -> tuple[Prediction, Tensor]:
        """Run a whole pass: return the prediction, and the activations at the layer."""
        if self.is_whole:
            return self.classifier(inputs), inputs
        kept: list[Tensor] = []

        def keep(_layer: nn.Module, given: tuple[Any, ...]) -> None:
            if not self.classifier.is_trying_shares:
                kept.append(given[0])

        hook = self._watch(keep)
        try:
            prediction: Prediction = self.classifier(inputs)
        finally:
            hook.remove()
        return prediction, kept[0]

    def forward(self, activations: Tensor) -> Prediction:
        """Run the rest of a pass."""
        if self.is_whole:
            whole: Prediction = self.classifier(activations)
            return whole

        def put_in(_layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
            return (activations, *given[1:])

        hook = self._watch(put_in)
        try:
            return self.classifier.run(self.empty, rows=len(activations))
        finally:
            hook.remove()

    def _watch(self, hook: Hook) -> RemovableHandle:
        return self.classifier.model.get_submodule(self.layer).register_forward_pre_hook(hook)


def find_split(classifier: Classifier, inputs: Tensor) -> Split:
    """Split a classifier before the first layer that trains, if possible.

    The split is checked: continuing a pass must give the same answer as a whole one. A network is
    not split if connections skip the layer, if its activations are much larger than its inputs, or
    if batch-norm statistics change in training.

    Parameters
    ----------
    classifier
        The classifier. Its parameters with `requires_grad` train.
    inputs
        At least one sample.

    Examples
    --------
    >>> from attakit.nn.small import SmallCNN
    >>> from attakit.nn.trainable import trainable_parameters
    >>> classifier = Classifier(SmallCNN()).eval()
    >>> _ = trainable_parameters(classifier, "last:3")
    >>> find_split(classifier, torch.zeros(1, 1, 28, 28)).layer
    'block3'
    """
    probe, empty = inputs[:_PROBE], inputs[:0]
    whole = Split(classifier, "", empty)
    if classifier.norm not in ("frozen", "blended"):
        return whole
    layer = _first_trained(classifier, probe)
    split = Split(classifier, layer, empty)
    return split if layer and _continues(split, probe) else whole


def _first_trained(classifier: Classifier, probe: Tensor) -> str:
    """Return the outermost layer that runs first among those that train completely; "" if none."""
    names = {
        layer: name
        for name, layer in classifier.model.named_modules()
        if (trains := [each.requires_grad for each in layer.parameters()]) and all(trains)
    }
    ran: list[str] = []

    def note(layer: nn.Module, _given: tuple[Any, ...]) -> None:
        ran.append(names[layer])

    hooks = [layer.register_forward_pre_hook(note) for layer in names]
    try:
        with torch.no_grad():
            classifier(probe)
    finally:
        for hook in hooks:
            hook.remove()
    return ran[0] if ran else ""


def _continues(split: Split, probe: Tensor) -> bool:
    try:
        with torch.enable_grad():
            prediction, activations = split.run(probe)
            again = split(activations)
    except _FAULTS:  # a layer that takes no empty batch, or no tensor as its first argument
        return False
    return (
        not activations.requires_grad
        and activations.numel() <= _MOST * probe.numel()
        and torch.allclose(prediction.logits, again.logits, rtol=1e-4, atol=1e-5)
    )
