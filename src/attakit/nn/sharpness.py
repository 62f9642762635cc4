"""Going uphill a little before looking which way is down.

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
    """Inside, parameters stand at θ + ρ g/‖g‖, the worst point nearby; g are their gradients.

    Afterwards they stand bit for bit where they stood. Take the second gradient inside, and step
    with it outside.

    Parameters
    ----------
    parameters
        Moved in place; those without a gradient stay.
    radius
        ρ: how far the whole of them moves.

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
