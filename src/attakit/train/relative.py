"""An optimiser whose step size is relative to the weights."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn
from torch.optim import Adam

# A step moves each weight by about this share of the typical weight of its tensor.
RELATIVE_STEP = 0.005
_SMALLEST = 0.01  # tensors of zeros, like new biases, must be able to move
# If this many weights train, each moves less. Small changes of a million weights fit a few samples,
# and larger ones destroy what a large network knows.
MANY = 1_000_000
_SMALLER = 0.12


def relative_adam(parameters: Iterable[nn.Parameter], step: float = RELATIVE_STEP) -> Adam:
    """Return Adam with one learning rate per tensor, in proportion to its weights.

    The best learning rate of plain Adam or SGD differs by a factor of a hundred between a large
    convolutional network and a small MLP. Relative to the size of the weights it hardly differs
    among small networks. Where a million weights or more train, an eighth of it is enough.

    Parameters
    ----------
    parameters
        The parameters to train.
    step
        Step size relative to the root mean square of a tensor's weights.

    Examples
    --------
    >>> import torch
    >>> large, small = (nn.Parameter(torch.full((3,), size)) for size in (10.0, 0.1))
    >>> optimizer = relative_adam([large, small])
    >>> (large.sum() + small.sum()).backward()
    >>> _ = optimizer.step()
    >>> round(large[0].item(), 4), round(small[0].item(), 4)
    (9.95, 0.0995)
    """
    parameters = list(parameters)
    if sum(each.numel() for each in parameters) >= MANY:
        step *= _SMALLER
    return Adam({"params": [each], "lr": step * max(_size(each), _SMALLEST)} for each in parameters)


def _size(parameter: nn.Parameter) -> float:
    return float(parameter.detach().square().mean().sqrt())
