"""The base of methods that train without labels: checks, norm statistics, the optimizer.

The public code of Tent, EATA, SAR and CoTTA puts the whole model in training mode. Here the model
stays in evaluation mode and only batch-norm layers use the statistics of the batch. So dropout and
stochastic depth are off while a method adapts, and two equal calls of `predict` agree. With blended
statistics all passes of a step have those of the batch it answers, and no gradient flows through
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

from torch import nn
from torch.optim import SGD, Adam, Optimizer

from attakit.errors import check_choice, check_range
from attakit.methods.windowed import WindowedMethod
from attakit.nn.classifier import Classifier
from attakit.nn.norm import STREAM_NORMS, StreamNorm
from attakit.nn.trainable import trainable_parameters

OptimizerName = Literal["sgd", "adam"]
OPTIMIZERS: tuple[OptimizerName, ...] = ("sgd", "adam")


class GradientMethod(WindowedMethod):
    """Trains parameters by gradient steps, while norm layers use statistics of the stream.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the gradient step. For Adam the momentum is β₁; β₂ is 0.999.
    optimizer
        "sgd" or "adam".
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Samples that small batches are filled up to (see `WindowedMethod`).
    trained
        Function that returns the parameters to train, given the copy of the model; by default
        scales and shifts of norm layers.
    """

    stateful: ClassVar[tuple[str, ...]] = ("model", "optimizer", "window")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float,
        momentum: float,
        optimizer: OptimizerName = "sgd",
        norm: StreamNorm = "batch",
        window: int = 0,
        trained: Callable[[Classifier], list[nn.Parameter]] | None = None,
    ) -> None:
        super().__init__(model, window=window)
        check_choice(type(self).__name__, "norm", norm, STREAM_NORMS)
        self.model.use_norm(norm, source_share="auto")
        self.trained = (
            trainable_parameters(self.model, "norm") if trained is None else trained(self.model)
        )
        self.optimizer = make_optimizer(
            type(self).__name__, self.trained, optimizer, lr=lr, momentum=momentum
        )


def make_optimizer(
    who: str, parameters: Sequence[nn.Parameter], name: OptimizerName, *, lr: float, momentum: float
) -> Optimizer:
    """Check the settings of an optimizer, and create it.

    >>> make_optimizer("Tent", [nn.Parameter()], "adam", lr=0.1, momentum=0.9).defaults["betas"]
    (0.9, 0.999)
    """
    check_range(who, "lr", lr, above=0)
    check_choice(who, "optimizer", name, OPTIMIZERS)
    most = 0.9999 if name == "adam" else 1  # Adam divides by 1 - β₁
    check_range(who, "momentum", momentum, at_least=0, at_most=most)
    if name == "sgd":
        return SGD(parameters, lr=lr, momentum=momentum)
    return Adam(parameters, lr=lr, betas=(momentum, 0.999))
