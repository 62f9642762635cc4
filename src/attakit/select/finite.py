"""Check that numbers are finite."""

from __future__ import annotations

from torch import Tensor

from attakit.errors import ModelError


def check_finite(who: str, what: str, values: Tensor) -> None:
    """Raise `ModelError` unless all values computed from features or logits are finite.

    >>> import torch
    >>> check_finite("BADGE", "features", torch.tensor([1.0, float("nan")]))
    Traceback (most recent call last):
        ...
    attakit.errors.ModelError: BADGE: features must be finite, got NaN or infinity. The model has
    diverged: lower its learning rate.
    """
    if not bool(values.isfinite().all()):
        raise ModelError(
            f"{who}: {what} must be finite, got NaN or infinity. The model has diverged: lower "
            f"its learning rate."
        )
