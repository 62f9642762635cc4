"""CoTTA: learn from a slow teacher's answers, and restore some source weights.

Wang, Fink, Van Gool and Dai, "Continual Test-Time Domain Adaptation", CVPR 2022, section 3 and
Algorithm 1. https://arxiv.org/abs/2203.13591

Differences from the reference code: answers of several views are averaged as probabilities, as in
the paper's formula, not as logits. Every sample of a view gets its own random change. Views are
made of normalised inputs, without clipping to [0, 1]. Random draws depend only on the seed and the
number of updates. Every parameter trains and is restored, while the reference code uses only those
called weight or bias, so no position embedding of a ViT. Dropout is off. By default the loss is
plain cross-entropy, as in the paper, and the optimiser SGD. The reference code has Adam with lr
1e-3 for CIFAR (`optimizer="adam"`) and, for ImageNet, the mean of both directions of the
cross-entropy (`symmetric=True`).

The SimATTA paper compares with the ImageNet form and its bound of 0.1: `symmetric=True,
confidence_bound=0.1`. With ten classes or fewer this bound skips the views. Without views the plain
loss would have no gradient, because student and teacher start equal.

Views are averaged below a bound. In the paper it is the confidence that 95 % of *source* images
reach, minus 0.05. Methods here see no source data, so the default depends on the class count (see
`bound_for`). The often copied value 0.1 was made for 1,000 classes. With ten or fewer no confidence
is below it, because the largest of C probabilities is at least 1/C.
"""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.errors import SettingError, check_count, check_range
from attakit.methods.base import without_stream
from attakit.methods.gradient import GradientMethod, OptimizerName
from attakit.nn.augment import augment
from attakit.nn.classifier import Classifier
from attakit.nn.entropy import symmetric_cross_entropy
from attakit.nn.norm import StreamNorm
from attakit.nn.seeding import torch_generator
from attakit.nn.trainable import trainable_parameters
from attakit.records import Prediction, Step
from attakit.train.descent import descend

# Published bounds: CIFAR-10, CIFAR-100, ImageNet.
PUBLISHED_BOUNDS = {10: 0.92, 100: 0.72, 1000: 0.1}


def bound_for(classes: int) -> float:
    """Return the confidence below which views are averaged, for a number of classes.

    It passes through the published bounds. Each is some share of the way from chance, 1/C, to
    certainty, 1. Between published class counts this share is interpolated along log C; beyond them
    it stays the same. So the bound is above chance for every C.

    >>> [round(bound_for(classes), 3) for classes in (2, 7, 10, 65, 100, 200, 1000)]
    [0.956, 0.924, 0.92, 0.757, 0.72, 0.533, 0.1]
    """
    counts = np.array(list(PUBLISHED_BOUNDS))
    shares = (np.array(list(PUBLISHED_BOUNDS.values())) - 1 / counts) / (1 - 1 / counts)
    share = float(np.interp(math.log(classes), np.log(counts), shares))
    return 1 / classes + share * (1 - 1 / classes)


class CoTTA(GradientMethod):
    """A student follows its teacher; the teacher is the student's moving average.

    The teacher answers. If the source model is not confident, the teacher's answers to several
    random views of the batch are averaged. After each update a few weights of the student are
    restored to the source. Three copies of the model are kept.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum, optimizer
        Settings of the student's gradient step: "sgd", or "adam", whose β₁ is the momentum.
    trainable
        The parameters to train: "all" (the paper), "norm", "head" or "last:N".
    teacher_momentum
        α: share of the old teacher in the new one.
    restore_probability
        p: probability of each weight to be restored to the source after an update. The paper has
        0.01, and 0.001 for ImageNet.
    views
        N: random views whose answers are averaged.
    mirror
        True if views may be mirrored, as in the paper. Use False if left and right matter: digits,
        text.
    confidence_bound
        p_th: views are averaged if the source model's mean confidence on the batch is below it.
        "auto" derives it from the number of classes; 0 never averages, 1 practically always.
    symmetric
        Average the cross-entropy of the student's answers under the teacher's with the reverse.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.
    seed
        Seed of views and restored weights.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> step = CoTTA(tiny_classifier(), views=4).step(tiny_batch(), Allowance(0))
    >>> step.prediction.logits.shape, step.numbers["averaged_views"]
    (torch.Size([8, 3]), 4.0)
    """

    stateful = ("model", "teacher", "optimizer", "window", "update_count")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 1e-3,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        trainable: str = "all",
        teacher_momentum: float = 0.999,
        restore_probability: float = 0.01,
        views: int = 32,
        mirror: bool = True,
        confidence_bound: float | Literal["auto"] = "auto",
        symmetric: bool = False,
        norm: StreamNorm = "batch",
        window: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            model,
            lr=lr,
            momentum=momentum,
            optimizer=optimizer,
            norm=norm,
            window=window,
            trained=partial(trainable_parameters, which=trainable),
        )
        check_range("CoTTA", "teacher_momentum", teacher_momentum, at_least=0, at_most=1)
        check_range("CoTTA", "restore_probability", restore_probability, at_least=0, at_most=1)
        check_count("CoTTA", "views", views)
        _check_bound(confidence_bound)
        self.teacher_momentum = teacher_momentum
        self.restore_probability = restore_probability
        self.views = views
        self.mirror = mirror
        self.confidence_bound = confidence_bound
        self.symmetric = symmetric
        self.seed = seed
        self.update_count = 0
        self.source_model = copy.deepcopy(self.model)
        self.teacher = copy.deepcopy(self.model)

    @property
    def adapted_model(self) -> nn.Module:
        """The teacher's copy of the caller's model, which answers."""
        return without_stream(self.teacher)

    @property
    def followers(self) -> tuple[Classifier, ...]:
        """The student and the teacher. The source model has no memory of earlier batches."""
        return self.model, self.teacher

    def look(self, inputs: Tensor) -> Prediction:
        """Answer as the next step would, without changing anything."""
        return self._ask_teacher(inputs)[0]

    def adapt(self, inputs: Tensor) -> Step:
        prediction, numbers = self._ask_teacher(inputs)
        loss = self._loss(self.model(inputs).logits, prediction.logits)
        numbers["loss"] = descend("CoTTA", self.optimizer, loss)
        self.after_update()
        return Step(prediction, numbers=numbers)

    def _loss(self, student: Tensor, teacher: Tensor) -> Tensor:
        if self.symmetric:
            return symmetric_cross_entropy(student, teacher).mean()
        return F.cross_entropy(student, teacher.softmax(dim=1))

    @torch.no_grad()
    def after_update(self) -> None:
        """Let the teacher follow the student, then restore some of the student's weights."""
        random = torch_generator(self.seed, "restore", self.update_count, device=self.model.device)
        of_models = (model.parameters() for model in (self.teacher, self.model, self.source_model))
        for teacher, student, source in zip(*of_models, strict=True):
            if student.requires_grad:
                # Weight-averaged pseudo-labels: θ' ← α·θ' + (1 - α)·θ
                teacher.lerp_(student, 1 - self.teacher_momentum)
                self._restore(student, source, random)
        self.update_count += 1

    def _restore(self, student: Tensor, source: Tensor, random: torch.Generator) -> None:
        """Stochastic restoration: W ← M ⊙ W₀ + (1 - M) ⊙ W with M drawn from Bernoulli(p)."""
        if self.restore_probability > 0:
            chances = torch.rand(student.shape, generator=random, device=student.device)
            student.copy_(torch.where(chances < self.restore_probability, source, student))

    def _ask_teacher(self, inputs: Tensor) -> tuple[Prediction, dict[str, float]]:
        """Return the teacher's answer, averaged over views if the source model is not confident."""
        plain = self.answer(self.teacher, inputs)
        if len(inputs) == 0 or self.confidence_bound == 0:
            return plain, {"averaged_views": 0.0}
        source = self.answer(self.source_model, inputs).logits
        confidence = float(source.softmax(dim=1).amax(dim=1).mean())
        averages = confidence < self._bound(source.shape[1])
        numbers = {
            "source_confidence": confidence,
            "averaged_views": float(self.views) if averages else 0.0,
        }
        return (self._average(inputs, plain) if averages else plain), numbers

    def _average(self, inputs: Tensor, plain: Prediction) -> Prediction:
        """Augmentation-averaged pseudo-labels: mean probabilities, one view in memory at a time."""
        random = torch_generator(self.seed, "views", self.update_count, device=inputs.device)
        total = torch.full_like(plain.logits, -math.inf)
        for _ in range(self.views):
            view = self.place(augment(inputs, random, mirror=self.mirror))
            logits = self.answer(self.teacher, view).logits
            total = torch.logaddexp(total, logits.log_softmax(dim=1))
        return Prediction(total - math.log(self.views), plain.features)

    def _bound(self, classes: int) -> float:
        given = self.confidence_bound
        return bound_for(classes) if isinstance(given, str) else given


def _check_bound(given: float | str) -> None:
    if isinstance(given, str):
        if given != "auto":
            raise SettingError(
                f"CoTTA: confidence_bound must be a number or 'auto', got {given!r}."
            )
        return
    check_range("CoTTA", "confidence_bound", given, at_least=0, at_most=1)
