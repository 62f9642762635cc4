"""Seeds for torch's random numbers: global generators (first weights, dropout) or own ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from attakit.randomness import derived_seed

_CPU = torch.device("cpu")


@contextmanager
def seeded(
    seed: int, purpose: str, step: int | str = 0, *, device: torch.device = _CPU
) -> Iterator[None]:
    """Make torch's generators depend only on (seed, purpose, step) inside the block.

    Examples
    --------
    >>> with seeded(1, "weights"):
    ...     first = torch.rand(2)
    >>> with seeded(1, "weights"):
    ...     bool((torch.rand(2) == first).all())
    True
    """
    on_card = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] if on_card else []):
        # torch.manual_seed would reseed every GPU, and only the named one is restored.
        torch.default_generator.manual_seed(derived_seed(seed, purpose, step))
        if on_card:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(derived_seed(seed, purpose, step))
        yield


def torch_generator(
    seed: int, purpose: str, step: int | str = 0, *, device: torch.device = _CPU
) -> torch.Generator:
    """Make a torch generator for one purpose at one step.

    Examples
    --------
    >>> first, second = (torch_generator(1, "views", 3) for _ in range(2))
    >>> bool((torch.rand(2, generator=first) == torch.rand(2, generator=second)).all())
    True
    """
    return torch.Generator(device).manual_seed(derived_seed(seed, purpose, step))
