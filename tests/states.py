"""Compare what was saved with what came back."""

import torch


def same_state(first, second):
    """Whether two nested states are equal bit for bit."""
    if isinstance(first, torch.Tensor):
        return isinstance(second, torch.Tensor) and (
            first.dtype == second.dtype
            and first.shape == second.shape
            and bool(torch.equal(first, second))
        )
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(
            same_state(first[name], second[name]) for name in first
        )
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(
            same_state(a, b) for a, b in zip(first, second, strict=True)
        )
    return first == second
