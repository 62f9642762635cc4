"""Tent: make the model surer of its own answers.

Wang et al., "Tent: Fully test-time adaptation by entropy minimization", ICLR 2021, section 3.
https://arxiv.org/abs/2006.10726

Differs from the reference code: with several updates per batch the answer comes from the first
pass, so that no batch is answered by a model that has already trained on it; and any
normalisation layer counts, not only two-dimensional batch norm.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.optim import SGD

from attakit.errors import check_count, check_range
from attakit.methods.base import BaseMethod
from attakit.nn.entropy import softmax_entropy
from attakit.nn.trainable import trainable_parameters
from attakit.records import Batch, Step
from attakit.train.descent import descend


class Tent(BaseMethod):
    """Lowers the entropy of predictions by moving normalisation scales and shifts.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Of the gradient step.
    updates
        Updates per batch. The paper uses one.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> Tent(tiny_classifier()).step(tiny_batch(), allowance=0).prediction.logits.shape
    torch.Size([8, 3])
    """

    stateful = ("model", "optimizer")

    def __init__(
        self, model: nn.Module, *, lr: float = 1e-3, momentum: float = 0.9, updates: int = 1
    ) -> None:
        super().__init__(model)
        check_range("Tent", "lr", lr, above=0)
        check_range("Tent", "momentum", momentum, at_least=0, at_most=1)
        check_count("Tent", "updates", updates)
        self.updates = updates
        self.model.use_norm("batch")
        parameters = trainable_parameters(self.model, "norm")
        self.optimizer = SGD(parameters, lr=lr, momentum=momentum)

    def step(self, batch: Batch, allowance: int) -> Step:  # noqa: ARG002
        inputs = self.place(batch.inputs)
        if len(batch) == 0:
            return Step(self.predict(inputs))
        answer = self.model(inputs)
        loss = self._descend(answer.logits)
        for _ in range(self.updates - 1):
            self._descend(self.model(inputs).logits)
        return Step(answer.detach(), numbers={"loss": loss})

    def _descend(self, logits: Tensor) -> float:
        return descend("Tent", self.optimizer, softmax_entropy(logits).mean())
