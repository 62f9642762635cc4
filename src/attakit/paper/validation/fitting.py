"""Train a classifier on weighted samples, and measure it."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor

from attakit.errors import ModelError, check_count, check_range
from attakit.nn.batched import logits_in_batches
from attakit.nn.classifier import Classifier
from attakit.nn.devices import place
from attakit.nn.norm import moving_statistics
from attakit.nn.seeding import seeded
from attakit.paper.validation.testbed import Norm
from attakit.stream.samples import Samples, Subset
from attakit.train.source_samples import draw_epochs

_MEASURE_BATCH = 250


@dataclass(frozen=True)
class Fitting:
    """How long and how fast the models of a validation experiment train, with Adam.

    Parameters
    ----------
    updates
        Optimiser steps.
    lr
        Learning rate.
    batch_size
        Samples per update.

    Examples
    --------
    >>> Fitting(updates=0)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: Fitting: updates must be at least 1, got 0.
    """

    updates: int = 150
    lr: float = 1e-3
    batch_size: int = 64

    def __post_init__(self) -> None:
        check_count("Fitting", "updates", self.updates)
        check_range("Fitting", "lr", self.lr, above=0)
        check_count("Fitting", "batch_size", self.batch_size)


@dataclass(frozen=True)
class Measured:
    """Mean cross-entropy, and the share of right answers."""

    loss: float
    accuracy: float


def fit(
    model: Classifier,
    samples: Samples,
    weights: Tensor,
    fitting: Fitting,
    *,
    norm: Norm,
    seed: int,
) -> None:
    """Minimise the weighted mean of the losses, in place.

    The model is left in evaluation mode. Samples without weight are excluded, because they would
    still change the statistics of batch-norm layers.
    """
    counted = weights.nonzero().flatten().tolist()
    if not counted:
        raise ModelError("fit: no sample has any weight, so there is nothing to learn.")
    samples, weights = Subset(samples, counted), weights[counted]
    labels = torch.tensor(samples.labels)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], fitting.lr)
    model.eval()
    batches = draw_epochs(range(len(samples)), fitting.batch_size, seed)
    with seeded(seed, "validation", device=model.device):
        for rows in islice(batches, fitting.updates):
            with moving_statistics(model) if norm == "running" else nullcontext():
                logits = model(place(samples.load(rows), model.device)).logits
            losses = F.cross_entropy(logits, labels[rows].to(logits.device), reduction="none")
            loss = (losses * weights[rows].to(losses)).mean()
            if not loss.isfinite():
                raise ModelError(
                    f"The loss became {loss.item()} in training with lr={fitting.lr}. Lower it "
                    "with --lr."
                )
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()


def measure(model: Classifier, samples: Samples) -> Measured:
    """Measure loss and accuracy on samples."""
    labels = torch.tensor(samples.labels)
    loss, right = 0.0, 0
    batches = logits_in_batches(model, samples, range(len(samples)), _MEASURE_BATCH)
    for rows, logits in batches:
        truth = labels[rows]
        loss += float(F.cross_entropy(logits, truth, reduction="sum"))
        right += int((logits.argmax(dim=1) == truth).sum())
    return Measured(loss / len(samples), right / len(samples))
