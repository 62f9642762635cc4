"""Learn new labels in few steps while keeping the source model's answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim import Adam

from attakit.errors import SettingError, check_count, check_range
from attakit.nn.classifier import Classifier
from attakit.nn.norm import moving_statistics
from attakit.nn.split import Split
from attakit.nn.steady import steady_statistics
from attakit.randomness import generator
from attakit.records import LabelledRows, Training
from attakit.store.anchors import Anchors
from attakit.train.answers import answer_loss
from attakit.train.descent import descend
from attakit.train.draws import draw_batches
from attakit.train.relative import relative_adam
from attakit.train.weighting import Weighting, low_share

_WHO = "DistillingTrainer"
_MEMORY = 0.7  # share of earlier losses in the mean that ends training

LearningRate = float | Literal["auto"]


class DistillingTrainer:
    """Adam on w₀·distillation(source-like) + (1 - w₀)·CE(labelled), while labels are new.

    The source-like anchors keep the source model's soft answers. Its hard answers would be right at
    the start, without loss or gradient, until the damage is done. With blended statistics, anchors
    use those of the stream, not of a mini-batch.

    Parameters
    ----------
    lr
        Learning rate of Adam. "auto" gives every tensor its own rate, a two-hundredth of the
        typical size of its weights, or an eighth of that if a million or more train. This needs no
        tuning to the model.
    updates_per_label
        Updates for each new label. Without new labels nothing is trained.
    max_updates
        Maximum number of updates per call.
    enough
        Stop when the mean loss on labelled anchors over recent updates is below this.
    temperature
        Temperature of the soft answers. Above 1, unlikely classes count more.
    batch_size
        Labelled anchors per update, and the same number of source-like ones. Up to half of the
        labelled ones are new.
    weighting
        How w₀ follows from the anchor counts.
    seed
        Seed of the draws.

    Examples
    --------
    >>> DistillingTrainer(lr=-1.0)
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: DistillingTrainer: lr must be greater than 0, got -1.0.
    """

    def __init__(
        self,
        *,
        lr: LearningRate = "auto",
        updates_per_label: float = 3.0,
        max_updates: int = 40,
        enough: float = 0.05,
        temperature: float = 2.0,
        batch_size: int = 16,
        weighting: Weighting | None = None,
        seed: int = 0,
    ) -> None:
        if isinstance(lr, str) and lr != "auto":
            raise SettingError(f"{_WHO}: lr must be a number or 'auto', got {lr!r}.")
        if lr != "auto":
            check_range(_WHO, "lr", lr, above=0)
        check_range(_WHO, "updates_per_label", updates_per_label, above=0)
        check_count(_WHO, "max_updates", max_updates, at_least=1)
        check_range(_WHO, "enough", enough, at_least=0)
        check_range(_WHO, "temperature", temperature, above=0)
        check_count(_WHO, "batch_size", batch_size, at_least=2)
        self.lr = lr
        self.updates_per_label = updates_per_label
        self.max_updates = max_updates
        self.enough = enough
        self.temperature = temperature
        self.batch_size = batch_size
        self.weighting = weighting or Weighting()
        self.seed = seed
        self.learned = 0  # labelled anchors that earlier calls trained on

    def fit(self, model: Classifier | Split, low: Anchors, high: Anchors, step: int) -> Training:
        """Train the model in place on labels since the last call, mixed with earlier ones."""
        new = min(high.seen - self.learned, len(high))
        self.learned = high.seen
        if new <= 0:
            return Training()
        draws = self._draws(low, high.rows, new, step)
        optimizer = self._optimizer(model)
        updates, mean, held = 0, math.nan, math.nan
        with moving_statistics(model) if model.norm == "running" else steady_statistics(model):
            while updates < self._most(new) and not mean < self.enough:
                loss, held = self._update(model, optimizer, draws)
                mean = loss if updates == 0 else _MEMORY * mean + (1 - _MEMORY) * loss
                updates += 1
        numbers = {
            "loss_high": mean,
            "loss_low": held,
            "low_share": low_share(len(low), len(high)),
            "low_weight": draws.low_weight,
            "low_anchors": len(low),
            "high_anchors": len(high),
        }
        return Training(updates, numbers)

    def _most(self, new: int) -> int:
        return min(self.max_updates, math.ceil(new * self.updates_per_label))

    def _optimizer(self, model: Classifier | Split) -> Adam:
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return relative_adam(trained) if self.lr == "auto" else Adam(trained, lr=self.lr)

    def _draws(self, low: Anchors, high: LabelledRows, new: int, step: int) -> _Draws:
        random = generator(self.seed, "train", step)
        old, fresh = len(high) - new, min(new, self.batch_size // 2)
        parts = [(old, new, fresh), (0, old, self.batch_size - fresh)]
        if old == 0:
            parts = [(0, new, self.batch_size)]
        batches = [
            _shifted(start, draw_batches(count, size, random)) for start, count, size in parts
        ]
        if len(low) == 0:
            return _Draws(high, batches)
        weight = self.weighting.low_weight(len(low), len(high))
        replay = draw_batches(len(low), self.batch_size, random)
        return _Draws(high, batches, low.rows, replay, weight)

    def _update(
        self, model: Classifier | Split, optimizer: Adam, draws: _Draws
    ) -> tuple[float, float]:
        high, low = draws.next()
        entry = draws.high.entry[high]
        if draws.low is None:
            if len(high) == 1:  # twice: batch norm without stored statistics refuses one sample
                high, entry = high.repeat(2), torch.cat([entry, entry])
            loss = answer_loss(model(entry).logits, draws.high, high)
            return descend(_WHO, optimizer, loss), math.nan
        logits = model(torch.cat([entry, draws.low.entry[low]])).logits
        labelled = answer_loss(logits[: len(high)], draws.high, high)
        held = self._distance(logits[len(high) :], draws.low.logits[low])
        descend(_WHO, optimizer, (1 - draws.low_weight) * labelled + draws.low_weight * held)
        return labelled.item(), held.item()

    def _distance(self, logits: Tensor, source: Tensor) -> Tensor:
        """Return the divergence from the source model's soft answers."""
        # Gradients shrink with the square of the temperature; the factor corrects this.
        return self.temperature**2 * F.kl_div(
            (logits / self.temperature).log_softmax(dim=1),
            (source / self.temperature).log_softmax(dim=1),
            reduction="batchmean",
            log_target=True,
        )

    def state_dict(self) -> dict[str, Any]:
        return {"learned": self.learned}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.learned = state["learned"]


@dataclass(frozen=True, slots=True)
class _Draws:
    """Places of labelled and source-like anchors, update by update."""

    high: LabelledRows
    high_batches: list[Iterator[np.ndarray]]
    low: LabelledRows | None = None
    low_batches: Iterator[np.ndarray] | None = None
    low_weight: float = 0.0

    def next(self) -> tuple[Tensor, Tensor]:
        high = np.concatenate([next(batches) for batches in self.high_batches])
        low = np.empty(0, dtype=int) if self.low_batches is None else next(self.low_batches)
        device = self.high.labels.device
        return torch.from_numpy(high).to(device), torch.from_numpy(low).to(device)


def _shifted(start: int, batches: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    return (start + places for places in batches)
