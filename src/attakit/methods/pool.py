"""Active domain adaptation: labels in rounds, from a whole pool, without source data.

The paper compares with this stronger setting (Gui, Li and Ji, ICLR 2024, section 5.3, "Active
Domain Adaptation"). All unlabelled samples exist from the start, and each round may use all of
them. Nothing here is used on streams.

Deliberate differences from the public code: the images of the pool are never all in memory. A
skipped sample is not asked about again. A round without new labels trains nothing. Mini-batches
have one size and use all labels before any is repeated, while the public code draws with
replacement and makes the last one of a pass smaller. A round has exactly the set number of updates
(the public code makes 1,002 of 1,000). K-means starts three times (`selector.inits`) instead of
ten. Dropout is off.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import SGD

from attakit.errors import StreamError, check_count, check_range
from attakit.methods.base import BaseMethod
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import NormPolicy, moving_statistics
from attakit.nn.trainable import trainable_parameters
from attakit.protocols import Asks, Selector
from attakit.queries import Allowance, Answer, Query, SampleId
from attakit.randomness import generator
from attakit.records import Batch, Prediction, Rows, Step, Training
from attakit.train.descent import descend
from attakit.train.draws import draw_batches


class Pool(Protocol):
    """Samples without labels that are loaded on demand."""

    @property
    def names(self) -> Sequence[SampleId]: ...

    def __len__(self) -> int: ...

    def load(self, positions: Sequence[int]) -> Tensor:
        """Return the inputs at these positions, in this order."""
        ...


class PoolAdaptation(BaseMethod, Asks):
    """In each round: process the whole pool, ask, and train on all labels so far (momentum SGD).

    It runs on a stream of `Rounds`. Each round may spend its equal share of the budget, rounded
    down, and the last one all that is left. The next round spends what skipped questions refund. It
    learns from classes only: other answers are paid for but not used. Only the images of questioned
    samples stay in memory.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    samples
        The pool.
    selector
        Chooses samples from the pool.
    budget
        The limit of the ledger's budget.
    rounds
        Number of rounds of asking and training.
    updates
        Updates in each round with new labels.
    lr, momentum, batch_size
        Settings of the gradient steps. Batches use all labels before any is repeated.
    norm
        Statistics of batch-norm layers: "frozen" (the source's), "batch" or "running".
    trainable
        The parameters to train: "all", "norm", "head" or "last:N".
    forward_batch
        Samples per forward pass over the pool.
    seed
        Seed of the random draws.

    Examples
    --------
    >>> from attakit.engine import run
    >>> from attakit.label import Budget, KnownLabels, Ledger
    >>> from attakit.select import CLUE
    >>> from attakit.stream import Rounds, blobs
    >>> from attakit.testing import tiny_classifier
    >>> stream = Rounds(blobs(), 3)
    >>> method = PoolAdaptation(
    ...     torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Linear(4, 3)), stream.pool,
    ...     selector=CLUE(), budget=7, rounds=3, updates=5,
    ... )
    >>> run(stream, method, KnownLabels(stream.truth.labels), Ledger(Budget(7)))
    >>> len(method.labels)
    7
    """

    stateful = ("model", "labels", "trainings", "asked", "skipped")

    def __init__(
        self,
        model: nn.Module,
        samples: Pool,
        *,
        selector: Selector,
        budget: int,
        rounds: int = 10,
        updates: int = 1000,
        lr: float = 1e-3,
        momentum: float = 0.9,
        batch_size: int = 16,
        norm: NormPolicy = "frozen",
        trainable: str = "all",
        forward_batch: int = 100,
        seed: int = 0,
    ) -> None:
        who = "PoolAdaptation"
        check_count(who, "budget", budget, at_least=0)
        check_count(who, "rounds", rounds)
        check_count(who, "updates", updates)
        check_range(who, "lr", lr, above=0)
        check_range(who, "momentum", momentum, at_least=0, at_most=1)
        check_count(who, "batch_size", batch_size)
        check_count(who, "forward_batch", forward_batch)
        _check_names(samples)
        super().__init__(model)
        self.samples, self.selector = samples, selector
        self.budget, self.rounds = budget, rounds
        self.updates, self.lr, self.momentum = updates, lr, momentum
        self.batch_size, self.forward_batch, self.seed = batch_size, forward_batch, seed
        self.labels: dict[SampleId, int] = {}
        self.trainings = 0
        self.asked: tuple[SampleId, ...] = ()
        self.skipped: tuple[SampleId, ...] = ()  # asked, and answered without a label
        self.seen: Rows | None = None  # the whole pool, as the last round saw it
        self.model.use_norm(norm)
        trainable_parameters(self.model, trainable)
        self._positions = {name: position for position, name in enumerate(samples.names)}
        self._inputs: dict[SampleId, Tensor] = {}

    def step(self, batch: Batch, allowance: Allowance) -> Step:
        """Process the pool and choose what this round asks about.

        The batch holds the number of the round. The step contains its own batch: the chosen
        samples.
        """
        count = self._due(batch.step, allowance.count)
        if not count:
            return Step(self.predict(batch.inputs), seconds=0.0)
        self.seen, seconds = self._look()
        began = time.perf_counter()
        candidates, known = self._divide(self.seen)
        chosen = self.selector.select(candidates, known, count, batch.step).samples
        names = tuple(dict.fromkeys(chosen))  # a selector may repeat itself
        entropy = float(softmax_entropy(self.seen.logits).mean())
        seconds += time.perf_counter() - began
        if not names:
            return Step(self.predict(batch.inputs), seconds=seconds)
        self.asked += names
        self._fetch(names)
        rows = self.seen.take([self._positions[name] for name in names])
        return Step(
            Prediction(rows.logits, rows.features),
            tuple(Query(name, batch.step) for name in names),
            {"candidates": float(len(candidates)), "pool_entropy": entropy},
            batch=Batch(batch.step, names, self.images(names)),
            seconds=seconds,
        )

    def learn(self, answers: Sequence[Answer]) -> Training:
        """Train on all labels so far, if there are new ones among the answers."""
        skipped = tuple(answer.query.sample for answer in answers if answer.label is None)
        for name in skipped:
            self._inputs.pop(name, None)
        self.skipped += skipped
        labels = {a.query.sample: a.label for a in answers if a.label is not None}
        if not labels:
            return Training(numbers={"labelled": len(self.labels)})
        # A new dictionary: an earlier state keeps the old one.
        self.labels = {**self.labels, **labels}
        self.trainings += 1
        self._fetch(list(self.labels))
        return self._train()

    def images(self, names: Sequence[SampleId]) -> Tensor:
        """Return the images of questioned samples, in this order."""
        return torch.stack([self._inputs[name] for name in names])

    def _due(self, number: int, allowance: int) -> int:
        """Return how many labels this round may ask for: its share, and earlier refunds."""
        share = self.budget // self.rounds
        target = self.budget if number >= self.rounds - 1 else share * (number + 1)
        spent = self.budget - allowance
        return max(0, target - spent)

    def _look(self) -> tuple[Rows, float]:
        """Return features and logits of the whole pool, and the seconds the model took."""
        # Shuffled: a batch of one domain or class would harm the batch statistics.
        order = generator(self.seed, "pool order").permutation(len(self.samples))
        parts, seconds = [], 0.0
        for positions in np.array_split(order, -(-len(order) // self.forward_batch)):
            inputs = self.samples.load(positions.tolist())
            began = time.perf_counter()
            parts.append(self.predict(inputs))
            seconds += time.perf_counter() - began
        back = torch.from_numpy(order.argsort()).to(parts[0].logits.device)
        features = torch.cat([part.features for part in parts])[back]
        logits = torch.cat([part.logits for part in parts])[back]
        ones = torch.ones(len(order), device=logits.device)
        return Rows(tuple(self.samples.names), features, logits, ones), seconds

    def _divide(self, seen: Rows) -> tuple[Rows, Rows]:
        """Split the pool into what may be asked about, and what has a label or waits for one."""
        asked = {*self.asked}
        covered = (asked - {*self.skipped}) | {*self.labels}
        candidates = [at for at, name in enumerate(seen.samples) if name not in asked]
        known = [at for at, name in enumerate(seen.samples) if name in covered]
        return seen.take(candidates), seen.take(known)

    def _fetch(self, names: Sequence[SampleId]) -> None:
        """Load the images of some samples into memory."""
        missing = [name for name in names if name not in self._inputs]
        if missing:
            loaded = self.samples.load([self._positions[name] for name in missing])
            self._inputs |= dict(zip(missing, loaded, strict=True))

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
        return descend("PoolAdaptation", optimizer, loss)


def _check_names(samples: Pool) -> None:
    if len(samples) == 0:
        raise StreamError("PoolAdaptation: the pool must hold samples, got none.")
    if len(set(samples.names)) < len(samples):
        raise StreamError(
            "PoolAdaptation: every sample of the pool needs its own name, but some appear twice. "
            "Put the domain before the names."
        )
