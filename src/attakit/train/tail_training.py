"""Train the last stages of a network on labelled samples, and test whether that helps."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attakit.nn.classifier import Classifier
from attakit.nn.frozen_head import head_logits
from attakit.nn.row_norm import Pair
from attakit.nn.tail import Kept, Tail
from attakit.randomness import generator
from attakit.targets import Targets
from attakit.train.descent import descend
from attakit.train.draws import draw_batches
from attakit.train.likelihood import as_equal_rows
from attakit.train.relative import relative_adam
from attakit.train.residual_head import fit_head

_WHO = "tail training"
_BATCH = 32
_STEP = 0.01  # first step size relative to the weights; it shrinks to zero
_MOST_UPDATES = 120
_UPDATES_PER_LABEL = 1.5
_FOLDS = 2
_CLEAR = 0.5  # standard errors by which training must help; halves of the anchors underestimate it


@dataclass(frozen=True, slots=True)
class Lesson:
    """Labelled samples for training the last stages.

    Parameters
    ----------
    kept
        The samples.
    targets
        What people said about them.
    usual
        Batch-norm inputs of a pass with the source's weights.
    features, offsets
        Centred features and logits of that pass, as the head uses them.
    """

    kept: Kept
    targets: Targets
    usual: tuple[Pair, ...]
    features: Tensor
    offsets: Tensor

    @staticmethod
    def of(tail: Tail, kept: Kept, targets: Targets) -> Lesson:
        with torch.no_grad():
            found = tail.run(tail.source, kept)
        features = F.normalize(found.prediction.features - kept.centre, dim=1)
        return Lesson(kept, targets, found.found, features, found.prediction.logits)

    def take(self, places: Tensor) -> Lesson:
        usual = tuple((mean[places], square[places]) for mean, square in self.usual)
        return Lesson(
            self.kept.take(places),
            self.targets.take(places),
            usual,
            self.features[places],
            self.offsets[places],
        )

    def __len__(self) -> int:
        return len(self.features)


def train_tail(tail: Tail, lesson: Lesson, *, seed: int) -> Classifier:
    """Train a copy of the source's last stages on labelled samples, for a bounded time.

    It always starts from the source's weights, so the result depends only on the samples.

    Parameters
    ----------
    tail
        The source, and the part of it that trains.
    lesson
        The labelled samples.
    seed
        Seed of the mini-batches.
    """
    trained = copy.deepcopy(tail.source)
    parameters = [each for each in trained.parameters() if each.requires_grad]
    optimizer = relative_adam(parameters, _STEP)
    first = [group["lr"] for group in optimizer.param_groups]
    updates = min(_MOST_UPDATES, math.ceil(_UPDATES_PER_LABEL * len(lesson)))
    batches = draw_batches(len(lesson), _BATCH, generator(seed, "tail", len(lesson)))
    with torch.enable_grad():
        for update in range(updates):
            part = lesson.take(torch.from_numpy(next(batches)).to(lesson.features.device))
            shrink = 0.5 * (1 + math.cos(math.pi * update / updates))
            for group, lr in zip(optimizer.param_groups, first, strict=True):
                group["lr"] = shrink * lr
            logits = tail.run(trained, part.kept, part.usual).prediction.logits
            losses = part.targets.losses(logits.double())
            weights = part.targets.weights
            descend(_WHO, optimizer, weights @ losses / weights.sum().clamp(min=1e-6))
    return trained


def features_after(
    tail: Tail, trained: Classifier, lesson: Lesson, moved: Sequence[Pair], shift: Tensor
) -> tuple[Tensor, Tensor]:
    """Return centred features and logits of samples with trained stages.

    Parameters
    ----------
    tail, trained, lesson
        As in `train_tail`.
    moved
        How batch-norm statistics moved with the weights.
    shift
        How the mean of the features moved with them.
    """
    with torch.no_grad():
        found = tail.run(trained, lesson.kept.moved(moved)).prediction
    return F.normalize(found.features - lesson.kept.centre - shift, dim=1), found.logits


def movement(tail: Tail, trained: Classifier, lesson: Lesson) -> tuple[tuple[Pair, ...], Tensor]:
    """Return how batch-norm statistics and the feature mean move with trained weights."""
    with torch.no_grad():
        before = tail.run(tail.source, lesson.kept).prediction.features
        after = tail.run(trained, lesson.kept, lesson.usual)
    return after.moved, (after.prediction.features - before).mean(dim=0)


def gain_of_training(
    tail: Tail, lesson: Lesson, *, penalty: float, hedge: float, seed: int
) -> tuple[float, float]:
    """Return what training gains on held-out labelled samples: mean and standard error.

    Each half of the samples is held out once. The other half trains the last stages and fits the
    head on them; for comparison it fits the head on the source's features. The gain is in the
    probability of what people said, from -1 to 1 per sample. This is like an accuracy without
    rounding, so few samples say more. Every sample counts by the weight of its answer.

    Parameters
    ----------
    tail, lesson
        As in `train_tail`.
    penalty, hedge
        Settings of the head.
    seed
        Seed of the mini-batches.
    """
    if not bool(lesson.targets.weights.any()):
        return 0.0, 0.0
    fold = torch.arange(len(lesson), device=lesson.features.device) % _FOLDS
    gains = lesson.features.new_zeros(len(lesson))
    for part in range(_FOLDS):
        inside, outside = (where.nonzero().flatten() for where in (fold != part, fold == part))
        taught, asked = lesson.take(inside), lesson.take(outside)
        trained = train_tail(tail, taught, seed=seed)
        change = movement(tail, trained, taught)
        with_training = [features_after(tail, trained, each, *change) for each in (taught, asked)]
        without = [(each.features, each.offsets) for each in (taught, asked)]
        right = [
            _accuracy(known, new, taught.targets, asked.targets, penalty, hedge)
            for known, new in (with_training, without)
        ]
        gains[outside] = right[0] - right[1]
    gains = as_equal_rows(gains, lesson.targets.weights.to(gains))
    return float(gains.mean()), float(gains.std(unbiased=False)) / max(len(gains), 1) ** 0.5


def is_clear(gain: float, error: float) -> bool:
    """True if training helps by more than chance alone.

    >>> is_clear(0.05, 0.02), is_clear(0.01, 0.02)
    (True, False)
    """
    return gain > _CLEAR * error


def _accuracy(
    known: tuple[Tensor, Tensor],
    new: tuple[Tensor, Tensor],
    learned: Targets,
    asked: Targets,
    penalty: float,
    hedge: float,
) -> Tensor:
    """Return the probability of answers about new samples, from a head fitted to known ones."""
    weights = fit_head(*known, learned, penalty=penalty).float()
    features, offsets = new
    chances = head_logits(features, offsets, weights).softmax(dim=1)
    chances = chances.lerp(offsets.softmax(dim=1), hedge)
    return (chances * asked.shares.to(chances)).sum(dim=1)
