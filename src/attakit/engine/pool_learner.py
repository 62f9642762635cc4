"""The model of a pool run: trained anew on all labels whenever some have come."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from attakit.errors import check_count, check_range
from attakit.methods.base import BaseMethod
from attakit.nn.norm import NormPolicy, moving_statistics
from attakit.nn.trainable import trainable_parameters
from attakit.queries import Answer, SampleId
from attakit.randomness import generator
from attakit.records import Training
from attakit.train.descent import descend
from attakit.train.draws import draw_batches


class Pool(Protocol):
    """Samples that are loaded when they are needed, as adaptation sees them: without labels."""

    @property
    def names(self) -> Sequence[SampleId]: ...

    def __len__(self) -> int: ...

    def load(self, positions: Sequence[int]) -> Tensor:
        """Inputs at these positions, in this order."""
        ...


class PoolLearner(BaseMethod):
    """Momentum SGD on the cross-entropy of all labels so far, from the model as it is.

    The images of asked samples are kept in memory; all others stay where they are.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    samples
        The pool.
    updates
        Updates each time that new labels have come.
    lr, momentum, batch_size
        Of the gradient step. Batches go through all labels before any comes again.
    norm
        Statistics of batch-norm layers: "frozen" (the source's), "batch" or "running".
    trainable
        Which parameters train: "all", "norm", "head" or "last:N".
    seed
        Of the draws.

    Examples
    --------
    >>> from attakit.queries import Query
    >>> from attakit.stream import ArraySamples
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> pool = ArraySamples(tiny_batch().inputs, [0] * 8)
    >>> learner = PoolLearner(tiny_classifier(), pool, updates=3)
    >>> learner.learn([Answer(Query(pool.names[0], step=0), label=1, annotator="me")]).updates
    3
    """

    stateful = ("model", "labels", "trainings")

    def __init__(
        self,
        model: nn.Module,
        samples: Pool,
        *,
        updates: int = 1000,
        lr: float = 1e-3,
        momentum: float = 0.9,
        batch_size: int = 16,
        norm: NormPolicy = "frozen",
        trainable: str = "all",
        seed: int = 0,
    ) -> None:
        who = "PoolLearner"
        check_count(who, "updates", updates)
        check_range(who, "lr", lr, above=0)
        check_range(who, "momentum", momentum, at_least=0, at_most=1)
        check_count(who, "batch_size", batch_size)
        super().__init__(model)
        self.updates, self.lr, self.momentum = updates, lr, momentum
        self.batch_size, self.seed = batch_size, seed
        self.labels: dict[SampleId, int] = {}
        self.trainings = 0
        self.model.use_norm(norm)
        trainable_parameters(self.model, trainable)
        self._samples = samples
        self._places = {name: place for place, name in enumerate(samples.names)}
        self._inputs: dict[SampleId, Tensor] = {}

    def fetch(self, names: Sequence[SampleId]) -> None:
        """Bring the images of some samples into memory."""
        missing = [name for name in names if name not in self._inputs]
        if missing:
            loaded = self._samples.load([self._places[name] for name in missing])
            self._inputs |= dict(zip(missing, loaded, strict=True))

    def images(self, names: Sequence[SampleId]) -> Tensor:
        """The images of some samples that are in memory, in this order."""
        return torch.stack([self._inputs[name] for name in names])

    def learn(self, answers: Sequence[Answer]) -> Training:
        """Train on all labels so far, if there are new ones among the answers."""
        for answer in answers:
            if answer.label is None:
                self._inputs.pop(answer.query.sample, None)
        labels = {a.query.sample: a.label for a in answers if a.label is not None}
        if not labels:
            return Training(numbers={"labelled": len(self.labels)})
        # A new dictionary: an earlier state keeps the old one.
        self.labels = {**self.labels, **labels}
        self.trainings += 1
        self.fetch(list(self.labels))
        return self._train()

    def _train(self) -> Training:
        names = list(self.labels)
        labels = torch.tensor(list(self.labels.values()))
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        optimizer = SGD(trained, lr=self.lr, momentum=self.momentum)
        random = generator(self.seed, "train pool", self.trainings)
        batches = draw_batches(len(names), self.batch_size, random)
        running = self.model.norm == "running"
        loss = math.nan
        with moving_statistics(self.model) if running else nullcontext():
            for _ in range(self.updates):
                rows = next(batches)
                inputs = self.images([names[row] for row in rows])
                loss = self._update(optimizer, inputs, labels[torch.from_numpy(rows)])
        return Training(self.updates, {"loss": loss, "labelled": len(names)})

    def _update(self, optimizer: SGD, inputs: Tensor, labels: Tensor) -> float:
        logits = self.model(self.place(inputs)).logits
        loss = F.cross_entropy(logits, labels.to(logits.device))
        return descend("PoolLearner", optimizer, loss)
