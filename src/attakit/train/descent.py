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
    value = checked_loss(who, optimizer, loss)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return value


def checked_loss(who: str, optimizer: Optimizer, loss: Tensor) -> float:
    """The value of a loss, or of what a loss is made of; raises where it is no real number.

    A method that leaves samples out must ask before it does so: NaN is below no bound, so a model
    that has diverged would look like one that finds nothing to learn from.
    """
    value = loss.item()
    if not math.isfinite(value):
        raise ModelError(
            f"{who}: the loss became {value}. Lower lr (now {optimizer.param_groups[0]['lr']}), or "
            f"check the inputs for values the model was not made for."
        )
    return value
