"""A copy of a model's initial parameters, to restore them or pull towards them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class Origin:
    """A copy of parameters at the time of its creation.

    Parameters
    ----------
    parameters
        The parameters to copy. `restore` and `pull` change them.

    Examples
    --------
    >>> weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    >>> origin = Origin([weight])
    >>> _ = weight.data.add_(10)
    >>> origin.pull(0.5)
    >>> weight.tolist()
    [6.0, 7.0]
    >>> origin.restore()
    >>> weight.tolist()
    [1.0, 2.0]
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        self.values: list[Tensor] = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def restore(self, optimizer: Optimizer | None = None) -> None:
        """Restore the parameters, and clear the state of an optimizer."""
        for parameter, value in zip(self.parameters, self.values, strict=True):
            parameter.copy_(value)
        if optimizer is not None:
            optimizer.state.clear()

    @torch.no_grad()
    def pull(self, share: float) -> None:
        """Move the parameters back by this share: θ ← (1 - share)·θ + share·θ₀."""
        for parameter, value in zip(self.parameters, self.values, strict=True):
            parameter.lerp_(value, share)

    def state_dict(self) -> dict[str, Any]:
        return {"values": self.values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        shapes = [tuple(value.shape) for value in self.values]
        given = [tuple(value.shape) for value in state["values"]]
        if given != shapes:
            raise ValueError(f"the parameters have shapes {given} instead of {shapes}")
        for own, saved in zip(self.values, state["values"], strict=True):
            own.copy_(saved)
