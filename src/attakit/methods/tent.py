"""Tent: make the model surer of its own answers.

Wang et al., "Tent: Fully test-time adaptation by entropy minimization", ICLR 2021, section 3.
https://arxiv.org/abs/2006.10726

Differences from the reference code: with several updates per batch the answer comes from the first
pass. So no batch is answered by a model that has already trained on it. Any normalisation layer
counts, not only two-dimensional batch norm. Dropout is off. The reference code has Adam with lr
1e-3 for CIFAR-10 (`optimizer="adam"`).
"""

from __future__ import annotations

from torch import Tensor, nn

from attakit.errors import check_count
from attakit.methods.gradient import GradientMethod, OptimizerName
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import StreamNorm
from attakit.records import Step
from attakit.train.descent import descend


class Tent(GradientMethod):
    """Lowers the entropy of predictions by changing normalisation scales and shifts.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum, optimizer
        Settings of the gradient step: "sgd", or "adam", whose β₁ is the momentum.
    updates
        Updates per batch. The paper uses one.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> Tent(tiny_classifier()).step(tiny_batch(), Allowance(0)).prediction.logits.shape
    torch.Size([8, 3])
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 1e-3,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        updates: int = 1,
        norm: StreamNorm = "batch",
        window: int = 0,
    ) -> None:
        super().__init__(
            model, lr=lr, momentum=momentum, optimizer=optimizer, norm=norm, window=window
        )
        check_count("Tent", "updates", updates)
        self.updates = updates

    def adapt(self, inputs: Tensor) -> Step:
        answer = self.model(inputs)
        loss = self._descend(answer.logits)
        for _ in range(self.updates - 1):
            self._descend(self.model(inputs).logits)
        return Step(answer.detach(), numbers={"loss": loss})

    def _descend(self, logits: Tensor) -> float:
        return descend("Tent", self.optimizer, softmax_entropy(logits).mean())
