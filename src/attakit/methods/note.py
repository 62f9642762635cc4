"""NOTE's memory on ordinary batch norm: lower the entropy of a class-balanced reservoir.

Gong et al., "NOTE: Robust continual test-time adaptation against temporal correlation", NeurIPS
2022, section 3.2 (prediction-balanced reservoir sampling) and section 3.3 (training).
https://arxiv.org/abs/2208.05117

Differences from the paper: its other half, instance-aware batch norm (section 3.1), is not
included, because a source model must be trained with it. Differences from the reference code: the
model from before the batch answers it and predicts its classes for the memory, while that code
processes one sample after another. Both agree if a batch ends at an update. An update is one pass
over the whole memory. The loss is the mean entropy, while that code also divides it by the number
of classes, which hardly affects Adam.
"""

from __future__ import annotations

from collections.abc import Collection

from torch import nn

from attakit.errors import check_count, check_range
from attakit.methods.base import BaseMethod
from attakit.methods.gradient import OptimizerName, make_optimizer
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import moving_statistics
from attakit.nn.trainable import trainable_parameters
from attakit.queries import Allowance, SampleId
from attakit.records import Batch, Step
from attakit.store.class_memory import BalancedReservoir, Kept
from attakit.train.descent import checked_loss, descend


class NOTE(BaseMethod):
    """Lowers the entropy of a memory that balances all predicted classes.

    Batches of any size work, even of one sample: stored statistics answer, they follow the memory
    slowly, and updates follow the number of samples.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the gradient step on normalisation scales and shifts.
    optimizer
        "adam", as in the paper, with the momentum as β₁; or "sgd".
    capacity
        Number of samples in memory.
    update_every
        Samples between two updates.
    statistics_share
        Share of a memory batch in the stored batch-norm statistics.
    seed
        Seed of the reservoir.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = NOTE(tiny_classifier(), update_every=8)
    >>> sorted(method.step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'loss', 'updates']
    """

    stateful = ("model", "optimizer", "memory", "arrived")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 1e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "adam",
        capacity: int = 64,
        update_every: int = 64,
        statistics_share: float = 0.01,
        seed: int = 0,
    ) -> None:
        super().__init__(model)
        check_count("NOTE", "update_every", update_every)
        check_range("NOTE", "statistics_share", statistics_share, at_least=0, at_most=1)
        self.memory = BalancedReservoir(capacity, seed=seed)
        self.trained = trainable_parameters(self.model, "norm")
        self.optimizer = make_optimizer("NOTE", self.trained, optimizer, lr=lr, momentum=momentum)
        self.update_every = update_every
        self.statistics_share = statistics_share
        self.arrived = 0

    def respond(self, batch: Batch, allowance: Allowance) -> Step:
        del allowance
        answer = self.answer(self.model, batch.inputs)
        checked_loss("NOTE", self.optimizer, softmax_entropy(answer.logits).mean())
        losses = []
        labels = answer.logits.argmax(dim=1).tolist()
        for sample, each, label in zip(batch.samples, batch.inputs, labels, strict=True):
            self.memory.add(Kept(sample, each.clone(), label))
            self.arrived += 1
            if self.arrived % self.update_every == 0:
                losses.append(self._update())
        numbers = {"kept": float(len(self.memory)), "updates": float(len(losses))}
        return Step(answer, numbers=numbers | ({"loss": losses[-1]} if losses else {}))

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove inputs of these samples from memory."""
        self.memory.forget(samples)

    def _update(self) -> float:
        with moving_statistics(self.model, momentum=self.statistics_share):
            logits = self.model(self.place(self.memory.inputs)).logits
        return descend("NOTE", self.optimizer, softmax_entropy(logits).mean())
