"""The likelihood of logits under people's answers, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from attakit.targets import Targets
from attakit.train.newton import Array

Values = TypeVar("Values", Array, Tensor)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Negative log-likelihood of targets, summed with their weights. A `Loss` for `DualProblem`.

    Parameters
    ----------
    shares, weights, open
        As in `Targets`.

    Examples
    --------
    >>> import torch
    >>> targets = Targets.of_labels(torch.tensor([0]), classes=2)
    >>> float(Likelihood.of(targets).losses(np.zeros((1, 2)))[0].round(3))
    0.693
    """

    shares: Array  # (rows, …, classes)
    weights: Array  # (rows, …, 1)
    open: np.ndarray[Any, np.dtype[np.bool_]]  # (rows, …)

    @staticmethod
    def of(targets: Targets) -> Likelihood:
        shares, weights = targets.shares.double().cpu().numpy(), targets.weights.double().cpu()
        return Likelihood(shares, weights.numpy()[:, None], targets.open.cpu().numpy())

    def folded(self, held_out: np.ndarray[Any, np.dtype[np.bool_]]) -> Likelihood:
        """Return one problem per column, each without the rows that its column marks."""
        weights = np.where(held_out, 0.0, self.weights)[..., None]
        shares = np.broadcast_to(self.shares[:, None], (*held_out.shape, self.shares.shape[1]))
        return Likelihood(shares, weights, np.broadcast_to(self.open[:, None], held_out.shape))

    def value(self, outputs: Array) -> float:
        return float((self.weights[..., 0] * self.losses(outputs)).sum())

    def losses(self, outputs: Array) -> Array:
        """Return the negative log-likelihood of every row, unweighted."""
        known = (self.shares * outputs).sum(axis=-1)
        if self.open.any():
            known[self.open] = np.logaddexp.reduce(self._possible(outputs), axis=-1)
        top = outputs.max(axis=-1)
        found: Array = np.log(np.exp(outputs - top[..., None]).sum(axis=-1)) + top - known
        return found

    def slopes(self, outputs: Array) -> Array:
        """Return the gradient of the weighted losses with respect to the logits."""
        wanted = self.shares
        if self.open.any():
            wanted = wanted.copy()
            wanted[self.open] = _softmax(self._possible(outputs))
        found: Array = self.weights * (_softmax(outputs) - wanted)
        return found

    def curvature(self, outputs: Array) -> tuple[Callable[[Array], Array], float]:
        """Return the Hessian of the weighted losses in the logits, and its mean diagonal entry."""
        everywhere = _softmax(outputs)
        weighted = self.weights * everywhere
        inside = _softmax(self._possible(outputs)) if self.open.any() else everywhere[:0]

        def along(direction: Array) -> Array:
            product: Array = weighted * (
                direction - (everywhere * direction).sum(axis=-1)[..., None]
            )
            if len(inside):
                product[self.open] -= self.weights[self.open] * _bend(inside, direction[self.open])
            return product

        return along, float((weighted * (1 - everywhere)).mean())

    def _possible(self, outputs: Array) -> Array:
        """Return the logits of open rows, without those of excluded classes."""
        return np.where(self.shares[self.open] > 0, outputs[self.open], -np.inf)


def as_equal_rows(values: Values, weights: Values) -> Values:
    """Return values whose plain mean and standard error are those of the weighted values.

    With equal weights they are the values themselves.

    Parameters
    ----------
    values, weights
        One number per row. The weights are at least 0, and not all 0.

    Examples
    --------
    >>> found = as_equal_rows(np.array([1.0, 4.0]), np.array([2.0, 1.0]))
    >>> float(found.mean())
    2.0
    """
    relative = weights / weights.mean()
    mean = (relative * values).mean()
    found: Values = relative * values + (1 - relative) * mean
    return found


def _softmax(outputs: Array) -> Array:
    powers = np.exp(outputs - outputs.max(axis=-1)[..., None])
    found: Array = powers / powers.sum(axis=-1)[..., None]
    return found


def _bend(chances: Array, direction: Array) -> Array:
    """Multiply the Hessian of logsumexp by a direction."""
    found: Array = chances * (direction - (chances * direction).sum(axis=-1)[..., None])
    return found
