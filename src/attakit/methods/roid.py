"""ROID: learn from sure and diverse samples, stay near the source, follow class frequencies.

Marsden, Döbler and Yang, "Universal test-time adaptation through weight ensembling, diversity
weighting, and prior correction", WACV 2024, section 3 (soft likelihood ratio with certainty and
diversity weights, consistency, weight ensembling, prior correction).
https://arxiv.org/abs/2306.00650

Differences from the authors' code: the loss is divided by the size of the current batch. That code
uses the batch size in the settings, which differs for a shorter last batch. If all samples are
equally diverse or equally sure, that weight is 0 instead of 0/0. Corrected logits are also
multiplied by the number of classes, so that a batch with even classes keeps its confidence (the
order of classes is the same). Views also get a little blur and noise, relative to the inputs'
standard deviation and without clipping to [0, 1]. With a window every answer is corrected, while
that code corrects only answers of an update.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.errors import check_choice, check_range
from attakit.methods.gradient import GradientMethod, OptimizerName
from attakit.methods.moving_average import follow
from attakit.nn.augment import augment
from attakit.nn.entropy import softmax_entropy, symmetric_cross_entropy
from attakit.nn.norm import StreamNorm
from attakit.nn.origin import Origin
from attakit.nn.priors import PRIOR_CORRECTIONS, PriorCorrection, correct_prior
from attakit.nn.seeding import torch_generator
from attakit.records import Prediction, Step
from attakit.train.descent import checked_loss, descend

CLIP, TINY = 0.99, 1e-5  # bounds in the soft likelihood ratio


class ROID(GradientMethod):
    """Raises the likelihood ratio of sure, diverse samples, with a constant pull to the source.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the gradient step on normalisation scales and shifts.
    optimizer
        "sgd", or "adam" as the authors' code has it for CIFAR (lr 1e-3), whose β₁ is the
        momentum.
    source_share
        Share of the source weights that is mixed in after every update.
    temperature
        Weights are exp(diversity · certainty / temperature).
    consistency
        True if the answers to a random view must agree with those to the batch.
    prior_correction
        How answers follow the class frequencies of their batch: "logits", as in the authors' code,
        "probabilities" or "none" (see `attakit.nn.priors`).
    mirror
        True if views may be mirrored. Use False if left and right matter: digits, text.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.
    seed
        Seed of the views.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> sorted(ROID(tiny_classifier()).step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'loss']
    """

    stateful: ClassVar[tuple[str, ...]] = (
        "model",
        "optimizer",
        "window",
        "origin",
        "average",
        "update_count",
    )

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        source_share: float = 0.01,
        temperature: float = 1 / 3,
        consistency: bool = True,
        prior_correction: PriorCorrection = "logits",
        mirror: bool = True,
        norm: StreamNorm = "batch",
        window: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            model, lr=lr, momentum=momentum, optimizer=optimizer, norm=norm, window=window
        )
        who = type(self).__name__
        check_range(who, "source_share", source_share, at_least=0, at_most=1)
        check_range(who, "temperature", temperature, above=0)
        check_choice(who, "prior_correction", prior_correction, PRIOR_CORRECTIONS)
        self.source_share = source_share
        self.temperature = temperature
        self.consistency = consistency
        self.prior_correction: PriorCorrection = prior_correction
        self.mirror = mirror
        self.seed = seed
        self.update_count = 0
        self.average: Tensor | None = None  # mean of all probabilities; None means uniform
        self.origin = Origin(self.trained)

    def look(self, inputs: Tensor) -> Prediction:
        return self._corrected(super().look(inputs))

    def adapt(self, inputs: Tensor) -> Step:
        answer: Prediction = self.model(inputs)
        checked_loss(type(self).__name__, self.optimizer, answer.logits.detach().mean())
        weights = self._weights(answer.logits.detach())
        kept = weights > 0
        losses = likelihood_ratio(answer.logits[kept])
        if self.consistency:
            view = self.model(self._view(inputs[kept])).logits
            losses = losses + symmetric_cross_entropy(view, answer.logits[kept])
        loss = (weights[kept] * losses).sum() / len(inputs)
        numbers = {"kept": float(kept.sum())}
        numbers["loss"] = descend(type(self).__name__, self.optimizer, loss)
        self.after_update()
        return Step(self._corrected(answer.detach()), numbers=numbers)

    def after_update(self) -> None:
        """Mix in a little of the source (weight ensembling)."""
        self.origin.pull(self.source_share)
        self.update_count += 1

    def _weights(self, logits: Tensor) -> Tensor:
        """Return the weight of each sample: 0 below the mean diversity. Updates the average."""
        chances = logits.softmax(dim=1)
        even = torch.full_like(chances[0], 1 / logits.shape[1])
        average = even if self.average is None else self.average
        diversity = _stretched(1 - F.cosine_similarity(average, chances))
        certainty = _stretched(-softmax_entropy(logits))
        self.average = follow(average, chances.mean(dim=0))
        weights = (diversity * certainty / self.temperature).exp()
        return weights.masked_fill(diversity < diversity.mean(), 0.0)

    def _view(self, inputs: Tensor) -> Tensor:
        random = torch_generator(self.seed, "views", self.update_count, device=inputs.device)
        return self.place(augment(inputs, random, mirror=self.mirror))

    def _corrected(self, answer: Prediction) -> Prediction:
        return Prediction(correct_prior(answer.logits, self.prior_correction), answer.features)


def likelihood_ratio(logits: Tensor) -> Tensor:
    """Return the negative soft likelihood ratio of each row: -Σ p log(p / (1 - p)).

    >>> likelihood_ratio(torch.zeros(1, 2)).abs() < 1e-4
    tensor([True])
    """
    chances = logits.softmax(dim=1).clamp(max=CLIP)
    return -(chances * (chances / (1 - chances) + TINY).log()).sum(dim=1)


def _stretched(values: Tensor) -> Tensor:
    """Scale the values from 0 to 1; all 0 if they are equal."""
    low, high = values.min(), values.max()
    return torch.zeros_like(values) if high == low else (values - low) / (high - low)
