"""One gradient step that stops if the loss is not finite."""

from __future__ import annotations

import math

from torch import Tensor
from torch.optim import Optimizer

from attakit.errors import ModelError


def descend(who: str, optimizer: Optimizer, loss: Tensor) -> float:
    """Take one gradient step; return the loss.

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
    """Return the value of a loss, or of its parts; raises if it is not finite.

    A method that filters samples must call it before. NaN is below no bound, so a diverged model
    would look like one that finds nothing to learn from.
    """
    value = loss.item()
    if not math.isfinite(value):
        raise ModelError(
            f"{who}: the loss became {value}. Lower lr (now {optimizer.param_groups[0]['lr']}), or "
            "check that the inputs fit the model."
        )
    return value
