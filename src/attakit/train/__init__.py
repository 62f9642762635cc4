"""Training: SimATTA's training on anchors, and training of source models."""

from typing import Any

from attakit.train.answers import answer_loss
from attakit.train.balanced import BalancedTrainer
from attakit.train.distilling import DistillingTrainer
from attakit.train.draws import draw_batches
from attakit.train.plateau import Plateau
from attakit.train.source import SourceTraining, train_source
from attakit.train.source_samples import split_positions
from attakit.train.weighting import Weighting, low_share

TRAINERS: dict[str, type[Any]] = {
    "balanced": BalancedTrainer,
    "distilling": DistillingTrainer,
}

__all__ = [
    "TRAINERS",
    "BalancedTrainer",
    "DistillingTrainer",
    "Plateau",
    "SourceTraining",
    "Weighting",
    "answer_loss",
    "draw_batches",
    "low_share",
    "split_positions",
    "train_source",
]
