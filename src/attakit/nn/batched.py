"""Forward passes over more samples than fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from attakit.nn.classifier import Classifier
from attakit.nn.devices import place

_Result = TypeVar("_Result")


class Loads(Protocol):
    """Samples that are loaded on demand."""

    def load(self, positions: Sequence[int]) -> Tensor:
        """Return the inputs at these positions, in this order."""
        ...


def predict_in_batches(
    predict: Callable[[Tensor], _Result], samples: Loads, positions: Sequence[int], batch_size: int
) -> Iterator[tuple[Sequence[int], _Result]]:
    """Yield the positions of each batch and its predictions, without gradients.

    >>> from attakit.stream import ArraySamples
    >>> samples = ArraySamples(torch.arange(3.0)[:, None], [0, 0, 1])
    >>> list(predict_in_batches(lambda inputs: inputs.sum().item(), samples, [2, 1, 0], 2))
    [([2, 1], 3.0), ([0], 0.0)]
    """
    for start in range(0, len(positions), batch_size):
        part = positions[start : start + batch_size]
        inputs = samples.load(part)
        with torch.no_grad():
            result = predict(inputs)
        yield part, result


def logits_in_batches(
    model: Classifier, samples: Loads, positions: Sequence[int], batch_size: int
) -> Iterator[tuple[Sequence[int], Tensor]]:
    """Yield the positions of each batch and its logits, on the CPU."""

    def predict(inputs: Tensor) -> Tensor:
        logits: Tensor = model(place(inputs, model.device)).logits
        return logits.cpu()

    return predict_in_batches(predict, samples, positions, batch_size)
