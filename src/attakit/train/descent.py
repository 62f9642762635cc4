"""One gradient step, and an end to it where the loss has left the real numbers."""

from __future__ import annotations

import math

from torch import Tensor
from torch.optim import Optimizer

from attakit.errors import ModelError


def descend(who: str, optimizer: Optimizer, loss: Tensor) -> float:
    """Take one step down a loss; return the loss.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.tensor(1.0))
    >>> descend("Tent", torch.optim.SGD([weight], lr=0.5), weight**2), weight.item()
    (1.0, 0.0)
    """
    value = loss.item()
    if not math.isfinite(value):
        raise ModelError(
            f"{who}: the loss became {value}. Lower lr (now {optimizer.param_groups[0]['lr']}), or "
            f"check the inputs for values the model was not made for."
        )
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return value
