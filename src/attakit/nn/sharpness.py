"""Sharpness-aware steps: ascend a little before computing the gradient.

Foret et al., "Sharpness-aware minimization for efficiently improving generalization", ICLR 2021,
equation 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

_TINY = 1e-12


@contextmanager
def ascended(parameters: Sequence[nn.Parameter], radius: float) -> Iterator[None]:
    """Move parameters to θ + ρ g/‖g‖ inside the block, the worst point nearby; g are gradients.

    Afterwards they are restored bit for bit. Compute the second gradient inside the block, and
    apply it outside.

    Parameters
    ----------
    parameters
        The parameters, moved in place. Those without a gradient stay.
    radius
        ρ: length of the move of all parameters together.

    Examples
    --------
    >>> weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    >>> weight.grad = torch.tensor([3.0, 4.0])
    >>> with ascended([weight], radius=5.0):
    ...     weight.tolist()
    [4.0, 6.0]
    >>> weight.tolist()
    [1.0, 2.0]
    """
    moved = [
        (parameter, parameter.detach().clone(), parameter.grad)
        for parameter in parameters
        if parameter.grad is not None
    ]
    with torch.no_grad():
        norms = [gradient.norm() for _, _, gradient in moved]
        length = torch.stack(norms).norm() if norms else torch.ones(())
        for parameter, _, gradient in moved:
            parameter.add_(gradient * (radius / (length + _TINY)))
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, before, _ in moved:
                parameter.copy_(before)
