"""Shared parts of the checks: a tiny model, tiny batches, and the global random state."""

from __future__ import annotations

import pickle
import random

import numpy as np
import torch
from torch import nn

from attakit.nn.seeding import seeded
from attakit.queries import SampleId
from attakit.randomness import derived_seed
from attakit.records import Batch

CLASSES = 3
WIDTH = 4


def tiny_classifier(seed: int = 0, width: int = WIDTH, classes: int = CLASSES) -> nn.Module:
    """Make a two-layer classifier with batch norm, from vectors of `width` to `classes`."""
    with seeded(seed, "tiny model"):
        return nn.Sequential(
            nn.Linear(width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, classes)
        )


def tiny_batch(step: int = 0, size: int = 8, width: int = WIDTH) -> Batch:
    """Make a batch of random vectors. Each step has different samples."""
    draws = torch.Generator().manual_seed(derived_seed(0, "tiny batch", step))
    samples = tuple(SampleId(f"{step}-{number}") for number in range(size))
    return Batch(step, samples, torch.randn(size, width, generator=draws))


def global_randomness() -> dict[str, bytes]:
    """Return the state of every global generator, to detect their use."""
    # As bytes, because arrays in NumPy's state have no single truth value.
    return {
        "Python": pickle.dumps(random.getstate()),
        "numpy": pickle.dumps(np.random.get_state()),
        "torch": torch.get_rng_state().numpy().tobytes(),
    }
