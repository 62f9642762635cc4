"""Balanced training on source-like and labelled anchors (SimATTA, Algorithm 1, lines 6 to 11)."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.optim import SGD

from attakit.errors import check_count, check_range
from attakit.nn.classifier import Classifier
from attakit.nn.norm import moving_statistics
from attakit.nn.split import Split
from attakit.randomness import generator
from attakit.records import LabelledRows, Training
from attakit.store.anchors import Anchors
from attakit.train.answers import answer_loss
from attakit.train.descent import descend
from attakit.train.draws import draw_batches
from attakit.train.plateau import Plateau
from attakit.train.weighting import Weighting, low_share

log = logging.getLogger(__name__)

Updates = int | Literal["unlimited"]

_SETTLED = 100  # labelled anchors; with fewer, a small share may only be the start of the stream


class BalancedTrainer:
    """Momentum SGD on w₀·CE(source-like) + (1 - w₀)·CE(labelled) until the latter levels off.

    Parameters
    ----------
    lr, momentum, batch_size
        Settings of the gradient step. The batch size is that of each half.
    weighting
        How w₀ follows from the anchor counts.
    max_updates
        Maximum number of updates per call; "unlimited" relies on the plateau alone.
    window, patience
        Settings of the `Plateau` that ends a call.
    fresh_optimizer
        Start every call without momentum. Otherwise momentum is kept.
    fill_missing_low
        If there are no source-like anchors, draw that half from the labelled ones, which then count
        twice. Otherwise the half is skipped.
    seed
        Seed of the draws.

    Examples
    --------
    >>> BalancedTrainer(lr=-1.0)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: BalancedTrainer: lr must be greater than 0, got -1.0.
    """

    def __init__(
        self,
        *,
        lr: float = 1e-3,
        momentum: float = 0.9,
        batch_size: int = 16,
        weighting: Weighting | None = None,
        max_updates: Updates = 40,
        window: int = 5,
        patience: int = 5,
        fresh_optimizer: bool = True,
        fill_missing_low: bool = False,
        seed: int = 0,
    ) -> None:
        who = "BalancedTrainer"
        check_range(who, "lr", lr, above=0)
        check_range(who, "momentum", momentum, at_least=0, at_most=1)
        check_count(who, "batch_size", batch_size, at_least=1)
        if max_updates != "unlimited":
            check_count(who, "max_updates", max_updates, at_least=1)
        Plateau(window=window, patience=patience)
        self.lr = lr
        self.momentum = momentum
        self.batch_size = batch_size
        self.weighting = weighting or Weighting()
        self.max_updates = max_updates
        self.window = window
        self.patience = patience
        self.fresh_optimizer = fresh_optimizer
        self.fill_missing_low = fill_missing_low
        self.seed = seed
        self._optimizer: SGD | None = None
        self._saved: Mapping[str, Any] | None = None
        self._has_warned = False

    def fit(self, model: Classifier | Split, low: Anchors, high: Anchors, step: int) -> Training:
        """Train the model in place. Without labelled anchors there is nothing to learn."""
        if len(high) == 0:
            return Training()
        self._warn_of_forgetting(len(low), len(high))
        optimizer = self._optimizer_for(model)
        plateau = self._plateau()
        halves = self._halves(low, high, step)
        updates, losses = 0, _Losses()
        with moving_statistics(model) if model.norm == "running" else nullcontext():
            while True:
                losses = self._update(model, optimizer, halves)
                updates += 1
                if plateau.is_reached(losses.high) or updates == self.max_updates:
                    break
        return Training(updates, self._numbers(low, high, halves, losses))

    def _halves(self, low: Anchors, high: Anchors, step: int) -> list[_Half]:
        if len(low) == 0 and not self.fill_missing_low:
            return [self._half("high", high.rows, 1.0, step)]
        low_rows = low.rows if len(low) else high.rows
        weight = self.weighting.low_weight(len(low_rows), len(high))
        return [
            self._half("high", high.rows, 1 - weight, step),
            self._half("low", low_rows, weight, step),
        ]

    def _half(self, name: str, rows: LabelledRows, weight: float, step: int) -> _Half:
        random = generator(self.seed, f"train {name}", step)
        return _Half(rows, weight, self._batches(len(rows), random))

    def _warn_of_forgetting(self, low: int, high: int) -> None:
        """Log once that the source may be forgotten: the paper recommends λ₀ of at least 0.5."""
        share = low_share(low, high)
        if self._has_warned or low == 0 or high < _SETTLED or share >= 0.5:
            return
        self._has_warned = True
        log.warning(
            "%d source-like samples for %d labels: their share is %.2f. Below 0.5 the model may "
            "forget the source. Raise low_entropy_capacity or low_entropy_bound.",
            low,
            high,
            share,
        )

    def _plateau(self) -> Plateau:
        return Plateau(window=self.window, patience=self.patience)

    def _batches(self, count: int, random: np.random.Generator) -> Iterator[np.ndarray]:
        return draw_batches(count, self.batch_size, random)

    def _update(self, model: Classifier | Split, optimizer: SGD, halves: list[_Half]) -> _Losses:
        drawn = [half.next() for half in halves]
        parts = self._logits(
            model, [half.rows.entry[at] for half, at in zip(halves, drawn, strict=True)]
        )
        losses = [
            answer_loss(part, half.rows, at)
            for half, part, at in zip(halves, parts, drawn, strict=True)
        ]
        total = torch.stack(
            [half.weight * loss for half, loss in zip(halves, losses, strict=True)]
        ).sum()
        descend("BalancedTrainer", optimizer, total)
        values = [loss.item() for loss in losses]
        return _Losses(values[0], values[1] if len(values) > 1 else math.nan)

    def _logits(self, model: Classifier | Split, halves: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the logits of each half; with frozen norm statistics in one pass, to save time."""
        if model.norm != "frozen":
            return [model(inputs).logits for inputs in halves]
        return torch.split(model(torch.cat(list(halves))).logits, [len(half) for half in halves])

    def _numbers(
        self, low: Anchors, high: Anchors, halves: list[_Half], losses: _Losses
    ) -> dict[str, float]:
        return {
            "loss_high": losses.high,
            "loss_low": losses.low,
            "low_share": low_share(len(low), len(high)),
            "low_weight": 1 - halves[0].weight,
            "low_anchors": len(low),
            "high_anchors": len(high),
        }

    def _optimizer_for(self, model: Classifier | Split) -> SGD:
        if self._optimizer is None or self.fresh_optimizer:
            trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
            self._optimizer = SGD(trained, lr=self.lr, momentum=self.momentum)
            if self._saved is not None:
                self._optimizer.load_state_dict(dict(self._saved))
                self._saved = None
        return self._optimizer

    def state_dict(self) -> dict[str, Any]:
        if self.fresh_optimizer or self._optimizer is None:
            return {"optimizer": self._saved}
        return {"optimizer": self._optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        # The optimiser belongs to a model, which only `fit` knows.
        self._optimizer = None
        self._saved = state["optimizer"]


@dataclass(frozen=True, slots=True)
class _Losses:
    high: float = math.nan
    low: float = math.nan


@dataclass(frozen=True, slots=True)
class _Half:
    rows: LabelledRows
    weight: float
    batches: Iterator[np.ndarray]

    def next(self) -> Tensor:
        """Return the places of the anchors of the next update."""
        return torch.from_numpy(next(self.batches)).to(self.rows.labels.device)
