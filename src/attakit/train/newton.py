"""Newton's method for functions of a linear map with a quadratic penalty, in its dual form.

The weights are combinations of the rows that they are fitted to. So the search is over one
coefficient per row and class, and needs only the rows' inner products. It uses NumPy, because the
arrays are small and torch would spend most of its time on overhead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]

_NEWTON_STEPS = 100
_CG_STEPS = 200
_HALVINGS = 40
_ENOUGH = 1e-4  # share of the predicted decrease that a step must achieve (Armijo)
_FLATTEST = 1e-6  # minimum curvature in the preconditioner


class Loss(Protocol):
    """A sum of smooth functions, each of one row of outputs."""

    def value(self, outputs: Array) -> float: ...

    def slopes(self, outputs: Array) -> Array: ...

    def curvature(self, outputs: Array) -> tuple[Callable[[Array], Array], float]:
        """Return the Hessian as a function of a direction, and its mean diagonal entry."""


@dataclass(frozen=True, slots=True)
class DualProblem:
    """Minimise loss(offsets + gram·a) + penalty/2 · aᵀ·gram·a over coefficients a.

    With gram = X·Xᵀ the weights Xᵀ·a minimise loss(offsets + X·weights) + penalty/2 · |weights|².

    Parameters
    ----------
    gram
        Inner products of the rows.
    offsets
        Outputs without weights. Further axes are problems that are solved together.
    loss
        The function to minimise.
    penalty
        Strength of the penalty, above 0.
    """

    gram: Array  # (rows, rows)
    offsets: Array  # (rows, …, outputs)
    loss: Loss
    penalty: float

    def solve(self, start: Array, tolerance: float) -> Array:
        """Descend until the gradient in the weights is at most the tolerance.

        Every step solves the Newton equation by conjugate gradients, more exactly near the optimum.
        It draws no random numbers.
        """
        point = _Point.at(self, start)
        inverse = None
        for _ in range(_NEWTON_STEPS):
            gradient = self.loss.slopes(point.outputs) + self.penalty * point.coefficients
            length = float(np.sqrt((gradient * self.times_gram(gradient)).sum().clip(0)))
            if length <= tolerance:
                break
            hessian, flatness = self.loss.curvature(point.outputs)
            if inverse is None:
                inverse = self._preconditioner(flatness)
            way = self._newton_direction(gradient, hessian, inverse, min(0.25, length))
            lower = point.lower(self, *way, fall=float((gradient * way[1]).sum()))
            if lower is None:  # as low as rounding allows
                break
            point = lower
        return point.coefficients

    def times_gram(self, rows: Array) -> Array:
        return _times(self.gram, rows)

    def _preconditioner(self, flatness: float) -> Array:
        """Return the inverse of the Hessian for a loss with equal curvature everywhere."""
        usual = max(flatness, _FLATTEST) * self.gram
        usual[np.diag_indices_from(usual)] += self.penalty
        return np.asarray(np.linalg.inv(usual), dtype=np.float64)

    def _newton_direction(
        self,
        gradient: Array,
        hessian: Callable[[Array], Array],
        inverse: Array,
        accuracy: float,
    ) -> tuple[Array, Array]:
        """Solve (penalty + hessian·gram)·way = -gradient; return the way and gram·way.

        Uses conjugate gradients in the inner product of the gram matrix, where this is symmetric.
        """
        way, moved, residual = np.zeros_like(gradient), np.zeros_like(gradient), -gradient
        along = _times(inverse, residual)
        shift = self.times_gram(along)
        energy = float((residual * shift).sum())
        goal = accuracy**2 * energy
        for _ in range(_CG_STEPS):
            bent = self.penalty * along + hessian(shift)
            bend = float((shift * bent).sum())
            if bend <= 0:  # not convex here: the direction so far still descends
                break
            size = energy / bend
            way, moved, residual = way + size * along, moved + size * shift, residual - size * bent
            fresh = _times(inverse, residual)
            pushed = self.times_gram(fresh)
            before, energy = energy, float((residual * pushed).sum())
            if energy <= goal:
                break
            along, shift = fresh + energy / before * along, pushed + energy / before * shift
        if not way.any():
            way, moved = -gradient, -(self.times_gram(gradient))
        return way, moved


def _times(matrix: Array, rows: Array) -> Array:
    found: Array = (matrix @ rows.reshape(len(rows), -1)).reshape(rows.shape)
    return found


@dataclass(frozen=True, slots=True)
class _Point:
    coefficients: Array
    moved: Array  # gram · coefficients
    outputs: Array
    height: float

    @staticmethod
    def at(problem: DualProblem, coefficients: Array, moved: Array | None = None) -> _Point:
        moved = problem.times_gram(coefficients) if moved is None else moved
        outputs = problem.offsets + moved
        size = float((coefficients * moved).sum())
        height = problem.loss.value(outputs) + 0.5 * problem.penalty * size
        return _Point(coefficients, moved, outputs, height)

    def lower(self, problem: DualProblem, way: Array, moved: Array, fall: float) -> _Point | None:
        """Return the first point that is low enough, at full length, half of it, and so on."""
        length = 1.0
        for _ in range(_HALVINGS):
            found = _Point.at(
                problem, self.coefficients + length * way, self.moved + length * moved
            )
            if found.height <= self.height + _ENOUGH * length * fall:
                return found
            length /= 2
        return None
