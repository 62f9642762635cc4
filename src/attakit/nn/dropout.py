"""Dropout during inference: in a model's own layers, or after its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from attakit.nn.classifier import Classifier
from attakit.nn.trainable import block_layers


class Dropping:
    """Switches dropout on in a model in evaluation mode.

    Parameters
    ----------
    classifier
        Its own dropout layers are used if it has any, at their own rates. Otherwise features are
        dropped after every block, or before the last layer of a model without blocks.
    share
        Share of the features to drop, for a model without dropout layers.

    Examples
    --------
    >>> import torch
    >>> model = Classifier(nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))).eval()
    >>> dropping = Dropping(model, 0.3)
    >>> with dropping.on():
    ...     model.model[0].training
    True
    >>> model.model[0].training
    False
    """

    def __init__(self, classifier: Classifier, share: float) -> None:
        layers = [layer for layer in classifier.modules() if isinstance(layer, _DropoutNd)]
        self.layers = [layer for layer in layers if layer.p > 0]
        self.blocks = [] if self.layers else block_layers(classifier)
        self.classifier = classifier
        self.share = share

    @contextmanager
    def on(self) -> Iterator[None]:
        """Switch dropout on inside the block."""
        hooks = [layer.register_forward_hook(self._drop_output) for layer in self.blocks]
        if not self.layers and not hooks:
            # Looked up here: a classifier finds its head with the first inputs.
            hooks = [self.classifier.head.register_forward_pre_hook(self._drop_input)]
        for layer in self.layers:
            layer.train()
        try:
            yield
        finally:
            for layer in self.layers:
                layer.eval()
            for hook in hooks:
                hook.remove()

    def _drop_output(self, layer: nn.Module, given: tuple[Any, ...], output: Any) -> Any:
        del layer, given
        return self._dropped(output) if isinstance(output, Tensor) else output

    def _drop_input(self, layer: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        del layer
        return (self._dropped(given[0]), *given[1:])

    def _dropped(self, values: Tensor) -> Tensor:
        return F.dropout(values, self.share, training=True)
