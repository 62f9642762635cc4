"""Newton's method with conjugate gradients, for smooth convex functions of one tensor."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Along = Callable[[Tensor], Tensor]

_NEWTON_STEPS = 100
_CG_STEPS = 100
_HALVINGS = 40
_ENOUGH = 1e-4  # share of the promised decrease that a step must bring (Armijo)


def minimise(
    value: Callable[[Tensor], Tensor],
    slope: Callable[[Tensor], Tensor],
    curvature: Callable[[Tensor], Along],
    start: Tensor,
    tolerance: float,
) -> Tensor:
    """Walk downhill until no entry of the slope is greater than the tolerance.

    Every step solves the Newton equation by conjugate gradients, more exactly the nearer the
    optimum is, and halves its length until the function falls. It draws no random numbers.

    Parameters
    ----------
    value, slope
        The function, and its gradient.
    curvature
        Its Hessian at a point, as a function from directions to products.
    start
        Where to begin.
    tolerance
        Greatest entry of the slope at the end.

    Examples
    --------
    >>> three = torch.tensor([3.0])
    >>> minimise(lambda x: (x - three).square().sum(), lambda x: 2 * (x - three),
    ...          lambda _: lambda direction: 2 * direction, torch.zeros(1), 1e-6)
    tensor([3.])
    """
    point = start
    if point.numel() == 0:
        return point
    height, gradient = value(point), slope(point)
    for _ in range(_NEWTON_STEPS):
        if float(gradient.abs().max()) <= tolerance:
            break
        direction = _newton_direction(gradient, curvature(point))
        lower = _line_search(value, point, height, direction, float((gradient * direction).sum()))
        if lower is None:  # as low as rounding allows
            break
        point, height = lower
        gradient = slope(point)
    return point


def _newton_direction(gradient: Tensor, hessian: Along) -> Tensor:
    """Solve hessian(direction) = -gradient to a relative error that shrinks with the slope."""
    length = float(gradient.norm())
    goal = min(0.25, length**0.5) * length
    direction, residual = torch.zeros_like(gradient), -gradient
    conjugate, energy = residual, float((residual * residual).sum())
    for _ in range(_CG_STEPS):
        along = hessian(conjugate)
        bend = float((conjugate * along).sum())
        if bend <= 0:  # not convex here: what was found so far still leads downhill
            break
        step = energy / bend
        direction = direction + step * conjugate
        residual = residual - step * along
        before, energy = energy, float((residual * residual).sum())
        if energy <= goal * goal:
            break
        conjugate = residual + energy / before * conjugate
    return direction if bool(direction.any()) else -gradient


def _line_search(
    value: Callable[[Tensor], Tensor],
    point: Tensor,
    height: Tensor,
    direction: Tensor,
    fall: float,
) -> tuple[Tensor, Tensor] | None:
    """The first point that is low enough, at full length, half of it, and so on."""
    length = 1.0
    for _ in range(_HALVINGS):
        found = point + length * direction
        reached = value(found)
        if float(reached) <= float(height) + _ENOUGH * length * fall:
            return found, reached
        length /= 2
    return None
