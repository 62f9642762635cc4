"""RoTTA: learn from a memory of recent, sure samples of all classes, with a slow teacher.

Yuan, Xie and Li, "Robust test-time adaptation in dynamic scenarios", CVPR 2023: robust batch
normalisation (section 3.2), category-balanced sampling (3.3) and time-aware training (3.4).
https://arxiv.org/abs/2303.13899

Differences from the reference code: every sample of the strong view gets its own random change,
relative to the inputs' standard deviation and without clipping to [0, 1]. Norm layers of any kind
train, while the reference code knows batch norm only. A teacher's answer has its plain entropy,
while the reference code adds 1e-6 inside the logarithm.
"""

from __future__ import annotations

import copy
from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.errors import check_count, check_range
from attakit.methods.base import BaseMethod
from attakit.methods.gradient import OptimizerName, make_optimizer
from attakit.nn.augment import augment
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import robust_statistics
from attakit.nn.seeding import torch_generator
from attakit.nn.trainable import trainable_parameters
from attakit.queries import Allowance, SampleId
from attakit.records import Batch, Prediction, Step
from attakit.store.class_memory import Kept, TimelyMemory
from attakit.train.descent import checked_loss, descend


class RoTTA(BaseMethod):
    """A student follows its teacher on a balanced memory; the teacher, its average, answers.

    Made for streams whose classes come in runs. Batches of any size work, even of one sample:
    stored statistics answer, and updates follow the number of samples.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the student's gradient step on normalisation scales and shifts.
    optimizer
        "adam", as in the paper, with the momentum as β₁; or "sgd".
    capacity
        N: number of samples in memory.
    update_every
        Samples between two updates.
    statistics_share
        α: share of a memory batch in the batch-norm statistics.
    teacher_share
        ν: share of the student in the new teacher.
    time_weight, entropy_weight
        λ_t and λ_u: how much age and uncertainty count for leaving the memory.
    mirror
        True if views may be mirrored. Use False if left and right matter: digits, text.
    seed
        Seed of the views.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = RoTTA(tiny_classifier(), update_every=8)
    >>> sorted(method.step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'loss', 'updates']
    """

    stateful = ("model", "teacher", "optimizer", "memory", "arrived", "update_count")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 1e-3,
        momentum: float = 0.9,
        optimizer: OptimizerName = "adam",
        capacity: int = 64,
        update_every: int = 64,
        statistics_share: float = 0.05,
        teacher_share: float = 1e-3,
        time_weight: float = 1.0,
        entropy_weight: float = 1.0,
        mirror: bool = True,
        seed: int = 0,
    ) -> None:
        super().__init__(model)
        check_count("RoTTA", "update_every", update_every)
        check_range("RoTTA", "statistics_share", statistics_share, at_least=0, at_most=1)
        check_range("RoTTA", "teacher_share", teacher_share, at_least=0, at_most=1)
        self.memory = TimelyMemory(capacity, time_weight=time_weight, entropy_weight=entropy_weight)
        self.trained = trainable_parameters(self.model, "norm")
        self.optimizer = make_optimizer("RoTTA", self.trained, optimizer, lr=lr, momentum=momentum)
        self.update_every = update_every
        self.statistics_share = statistics_share
        self.teacher_share = teacher_share
        self.mirror = mirror
        self.seed = seed
        self.arrived = 0
        self.update_count = 0
        self.teacher = copy.deepcopy(self.model)

    @property
    def adapted_model(self) -> nn.Module:
        """The teacher's copy of the caller's model, which answers."""
        model: nn.Module = self.teacher.model
        return model

    def predict(self, inputs: Tensor) -> Prediction:
        return self.answer(self.teacher, self.place(inputs))

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        del allowance
        answer = self.answer(self.teacher, batch.inputs)
        entropy = softmax_entropy(answer.logits)
        checked_loss("RoTTA", self.optimizer, entropy.mean())
        labels, classes = answer.logits.argmax(dim=1).tolist(), answer.logits.shape[1]
        losses = []
        rows = zip(batch.samples, batch.inputs, labels, entropy.tolist(), strict=True)
        for sample, each, label, unsure in rows:
            self.memory.add(Kept(sample, each.clone(), label, unsure), classes)
            self.arrived += 1
            if self.arrived % self.update_every == 0:
                losses.append(self._update())
        numbers = {"kept": float(len(self.memory)), "updates": float(len(losses))}
        return Step(answer, numbers=numbers | ({"loss": losses[-1]} if losses else {}))

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove inputs of these samples from memory."""
        self.memory.forget(samples)

    @torch.no_grad()
    def after_update(self) -> None:
        """Let the teacher follow the student: θ' ← (1 - ν)·θ' + ν·θ."""
        pairs = zip(self.teacher.parameters(), self.model.parameters(), strict=True)
        for teacher, student in pairs:
            if student.requires_grad:
                teacher.lerp_(student, self.teacher_share)
        self.update_count += 1

    def _update(self) -> float:
        """Train the student on a strong view of the memory with the teacher's answers."""
        inputs = self.place(self.memory.inputs)
        random = torch_generator(self.seed, "views", self.update_count, device=inputs.device)
        view = self.place(augment(inputs, random, mirror=self.mirror))
        with robust_statistics(self.teacher, self.statistics_share):
            chances = self.answer(self.teacher, inputs).logits.softmax(dim=1)
        with robust_statistics(self.model, self.statistics_share):
            logits = self.model(view).logits
        # Timeliness: e^(-a) / (1 + e^(-a)) for an age of a memories.
        weights = (-self.memory.ages / self.memory.capacity).sigmoid().to(logits)
        losses = F.cross_entropy(logits, chances, reduction="none")
        loss = descend("RoTTA", self.optimizer, (weights * losses).mean())
        self.after_update()
        return loss
