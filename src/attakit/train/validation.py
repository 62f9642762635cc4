"""Validation during training, and restoring the best weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from attakit.nn.batched import logits_in_batches
from attakit.nn.classifier import Classifier
from attakit.train.source_samples import LabelledSamples, read_labels

BATCH_SIZE = 128


@dataclass(frozen=True, slots=True)
class Validation:
    """A model's results on held-out samples after some updates."""

    update: int
    accuracy: float  # between 0 and 1
    loss: float

    def is_better_than(self, other: Validation) -> bool:
        """Compare by accuracy, then by loss.

        >>> Validation(2, 0.5, 0.9).is_better_than(Validation(1, 0.5, 1.0))
        True
        """
        return (self.accuracy, -self.loss) > (other.accuracy, -other.loss)


class Validator:
    """Validates a classifier from time to time, and remembers its best weights.

    Parameters
    ----------
    classifier
        The classifier to validate. It is left in evaluation mode.
    samples
        The set with the held-out samples.
    positions
        Positions of the held-out samples. If empty, nothing is ever validated.
    """

    def __init__(
        self, classifier: Classifier, samples: LabelledSamples, positions: Sequence[int]
    ) -> None:
        self.classifier = classifier
        self.samples = samples
        self.positions = list(positions)
        self.labels = read_labels(samples)
        self.validations: list[Validation] = []
        self._best: Validation | None = None
        self._best_weights: dict[str, Tensor] = {}

    @property
    def last(self) -> Validation | None:
        return self.validations[-1] if self.validations else None

    def validate(self, update: int) -> dict[str, float]:
        """Validate now; returns no numbers if there is nothing to validate on."""
        if not self.positions:
            return {}
        now = self._measure(update)
        self.validations.append(now)
        if self._best is None or now.is_better_than(self._best):
            self._best = now
            weights = self.classifier.state_dict()
            self._best_weights = {name: value.clone() for name, value in weights.items()}
        return {"accuracy": now.accuracy}

    def restore_best(self) -> Validation | None:
        """Restore the best weights, and return when they were reached."""
        if self._best is not None:
            self.classifier.load_state_dict(self._best_weights)
        return self._best

    def state_dict(self) -> dict[str, Any]:
        return {
            "validations": [astuple(one) for one in self.validations],
            "best": None if self._best is None else astuple(self._best),
            "best_weights": self._best_weights,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.validations = [Validation(*one) for one in state["validations"]]
        self._best = None if state["best"] is None else Validation(*state["best"])
        self._best_weights = dict(state["best_weights"])

    def _measure(self, update: int) -> Validation:
        self.classifier.eval()
        right, loss = 0, 0.0
        batches = logits_in_batches(self.classifier, self.samples, self.positions, BATCH_SIZE)
        for positions, logits in batches:
            labels = self.labels[positions]
            right += int((logits.argmax(dim=1) == labels).sum())
            loss += float(F.cross_entropy(logits, labels, reduction="sum"))
        return Validation(update, right / len(self.positions), loss / len(self.positions))
