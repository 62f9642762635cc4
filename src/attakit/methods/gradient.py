"""What methods that train without labels share: checks, norm statistics, and the optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import nn
from torch.optim import SGD

from attakit.errors import check_range
from attakit.methods.base import BaseMethod
from attakit.nn.classifier import Classifier
from attakit.nn.trainable import trainable_parameters


class GradientMethod(BaseMethod):
    """Trains parameters with momentum SGD, while norm layers use the statistics of the batch.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Of the gradient step.
    trained
        Names the parameters to train, given the copy of the model; scales and shifts of norm
        layers by default.
    """

    stateful: ClassVar[tuple[str, ...]] = ("model", "optimizer")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float,
        momentum: float,
        trained: Callable[[Classifier], list[nn.Parameter]] | None = None,
    ) -> None:
        super().__init__(model)
        who = type(self).__name__
        check_range(who, "lr", lr, above=0)
        check_range(who, "momentum", momentum, at_least=0, at_most=1)
        self.model.use_norm("batch")
        self.trained = (
            trainable_parameters(self.model, "norm") if trained is None else trained(self.model)
        )
        self.optimizer = SGD(self.trained, lr=lr, momentum=momentum)
