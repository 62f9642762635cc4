"""The training samples of a source model: their split and order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import torch
from torch import Tensor

from attakit.errors import SettingError, StreamError
from attakit.randomness import generator


class LabelledSamples(Protocol):
    """Inputs with labels, loaded a few at a time."""

    def __len__(self) -> int: ...

    @property
    def labels(self) -> Sequence[int] | Tensor:
        """Class index of every sample."""

    def load(self, positions: Sequence[int]) -> Tensor:
        """Return the inputs at these positions, as one batch."""


def read_labels(samples: LabelledSamples) -> Tensor:
    """Return the labels of all samples, checked."""
    labels = torch.as_tensor(samples.labels)
    if len(samples) == 0:
        raise StreamError("train_source: there are no samples to train on.")
    if labels.shape != (len(samples),):
        raise StreamError(
            f"train_source: {len(samples)} samples come with labels of shape "
            f"{tuple(labels.shape)}; expected one label per sample."
        )
    if labels.is_floating_point() or labels.is_complex() or int(labels.min()) < 0:
        raise StreamError(
            "train_source: labels must be class indices (whole numbers from 0), got "
            f"{labels.dtype} from {labels.min().item()} to {labels.max().item()}."
        )
    return labels.long().cpu()


def split_positions(count: int, held_out: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the positions to train on and those to hold out, both sorted.

    Examples
    --------
    >>> [len(part) for part in split_positions(10, 0.2, seed=0)]
    [8, 2]
    """
    order = generator(seed, "source split").permutation(count).tolist()
    wanted = max(1, round(held_out * count)) if held_out > 0 else 0
    if wanted >= count:
        raise SettingError(
            f"train_source: held_out={held_out} of {count} samples leaves none to train on. Hold "
            "out fewer, or add samples."
        )
    return sorted(order[wanted:]), sorted(order[:wanted])


def draw_epochs(positions: Sequence[int], batch_size: int, seed: int) -> Iterator[list[int]]:
    """Yield batches forever: every epoch in a new order, without its incomplete last batch.

    >>> batches = draw_epochs(range(5), 2, seed=0)
    >>> [len(next(batches)) for _ in range(4)]
    [2, 2, 2, 2]
    """
    size = min(batch_size, len(positions))
    epoch = 0
    while True:
        order = generator(seed, "source order", epoch).permutation(len(positions)).tolist()
        for start in range(0, len(order) - size + 1, size):
            yield [positions[place] for place in order[start : start + size]]
        epoch += 1
