"""A moving average: of probabilities in EATA, of the loss in SAR."""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

KEPT = 0.9  # share of the old average that stays, in both papers

Value = TypeVar("Value", float, Tensor)


def follow(average: Value | None, value: Value) -> Value:
    """Move an average a little towards a new value; the first value is the first average.

    >>> follow(None, 2.0), follow(2.0, 12.0)
    (2.0, 3.0)
    """
    return value if average is None else KEPT * average + (1 - KEPT) * value
