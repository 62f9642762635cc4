"""Several sets of samples as one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attakit.errors import StreamError
from attakit.stream.samples import Samples


class Joined:
    """Sets of samples one after another, each still loaded only when it is needed.

    Parameters
    ----------
    parts
        The sets; their inputs have one shape.

    Examples
    --------
    >>> from attakit.stream.samples import ArraySamples
    >>> day = ArraySamples(torch.zeros(2, 3), [0, 1], prefix="day/")
    >>> night = ArraySamples(torch.ones(1, 3), [1], prefix="night/")
    >>> both = Joined([day, night])
    >>> both.names, both.load([2, 0])[:, 0].tolist()
    (('day/0', 'day/1', 'night/0'), [1.0, 0.0])
    """

    def __init__(self, parts: Sequence[Samples]) -> None:
        shapes = {tuple(part.shape) for part in parts}
        if len(shapes) != 1:
            raise StreamError(
                f"Joined: the sets must have inputs of one shape, got {sorted(shapes) or 'no set'}."
            )
        self.names = tuple(name for part in parts for name in part.names)
        self.labels = tuple(label for part in parts for label in part.labels)
        self.shape = shapes.pop()
        self._parts = tuple(parts)
        self._places = tuple(
            (number, position) for number, part in enumerate(parts) for position in range(len(part))
        )

    def __len__(self) -> int:
        return len(self.names)

    def load(self, positions: Sequence[int]) -> Tensor:
        """Inputs at these positions, in this order, one request per set."""
        rows: dict[int, list[int]] = {}
        for row, position in enumerate(positions):
            rows.setdefault(self._places[position][0], []).append(row)
        if not rows:
            return torch.zeros((0, *self.shape))
        loaded = [
            self._parts[number].load([self._places[positions[row]][1] for row in group])
            for number, group in rows.items()
        ]
        order = torch.tensor([row for group in rows.values() for row in group]).argsort()
        together = torch.cat(loaded)
        return together[order.to(together.device)]
