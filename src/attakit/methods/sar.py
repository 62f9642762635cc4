"""SAR: lower the entropy of reliable samples where the loss is flat; reset after a collapse.

Niu et al., "Towards stable test-time adaptation in dynamic wild world", ICLR 2023.
https://arxiv.org/abs/2302.12400

Bugs of the reference code and its ports that are avoided here:

- Recovery resets the moving average of the loss. Public code overwrites it with the old one, so one
  collapse gives reset after reset.
- Recovery drops the momentum of the gradient step. Public code restores the outer optimiser only,
  so the momentum of the inner one survives the reset.
- Recovery takes a setting. Public code ignores its own.
- If no sample stays reliable after the ascent there is no step. Public code makes a step with
  the momentum alone.

Other differences: which last layers stay fixed depends on the structure of the model, not on the
names of its layers. These are the same in ResNets and ViTs, and others in ConvNeXt, Swin,
EfficientNet, DenseNet and RegNet. The answer comes from the pass before the update. Dropout is off.
If a wrapper has labels, they are for its own step and are not part of the ascent.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Literal

from torch import Tensor, nn

from attakit.errors import check_count, check_range
from attakit.methods.gradient import GradientMethod, OptimizerName
from attakit.methods.moving_average import follow
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import StreamNorm
from attakit.nn.origin import Origin
from attakit.nn.sharpness import ascended
from attakit.nn.trainable import early_norm_parameters
from attakit.records import Prediction, Step
from attakit.train.descent import checked_loss


class SAR(GradientMethod):
    """Lowers the entropy of reliable samples at the worst point nearby; recovers from collapse.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum, optimizer
        Settings of the gradient step on normalisation scales and shifts: "sgd", or "adam", whose β₁
        is the momentum.
    updates
        Updates per batch. The paper uses one.
    radius
        ρ: length of the ascent before the gradient is computed.
    reliable_share
        A sample counts as reliable if its entropy is below E₀, this share of ln(classes).
    left_out
        Share of the blocks at the model's end whose norm layers do not train: layer4 of a ResNet,
        the last 3 of 12 blocks and the final norm layer of a ViT (see `early_norm_parameters`).
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.
    reset_below
        e₀: if the moving average of the loss falls below it, the model has collapsed and is reset.
        "auto" is the paper's 0.2 for 1,000 classes, in proportion to ln(classes). 0 never resets.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> sorted(SAR(tiny_classifier()).step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'reset']
    """

    stateful = ("model", "optimizer", "window", "origin", "average")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        updates: int = 1,
        radius: float = 0.05,
        reliable_share: float = 0.4,
        left_out: float = 0.25,
        reset_below: float | Literal["auto"] = "auto",
        norm: StreamNorm = "batch",
        window: int = 0,
    ) -> None:
        check_range("SAR", "left_out", left_out, at_least=0, at_most=1)
        trained = partial(early_norm_parameters, left_out=left_out)
        super().__init__(
            model,
            lr=lr,
            momentum=momentum,
            optimizer=optimizer,
            norm=norm,
            window=window,
            trained=trained,
        )
        check_count("SAR", "updates", updates)
        check_range("SAR", "radius", radius, at_least=0)
        check_range("SAR", "reliable_share", reliable_share, at_least=0, at_most=1)
        if reset_below != "auto":
            check_range("SAR", "reset_below", reset_below, at_least=0)
        self.updates = updates
        self.radius = radius
        self.reliable_share = reliable_share
        self.reset_below = reset_below
        self.average: float | None = None  # moving average of the loss at the worst point
        self.origin = Origin(self.trained)

    def adapt(self, inputs: Tensor) -> Step:
        answer: Prediction = self.model(inputs)
        numbers = self._update(inputs, answer.logits)
        for _ in range(self.updates - 1):
            self._update(inputs, self.model(inputs).logits)
        return Step(answer.detach(), numbers=numbers)

    def _update(self, inputs: Tensor, logits: Tensor) -> dict[str, float]:
        """Ascend, compute the gradient there, and apply it to the original weights."""
        margin = self.reliable_share * math.log(logits.shape[1])
        entropy = self._entropy(logits)
        reliable = entropy.detach() < margin
        numbers = {"kept": 0.0, "reset": 0.0}
        if not reliable.any():
            return numbers
        self._backward(entropy[reliable].mean())
        with ascended(self.trained, self.radius):
            worst = self._entropy(self.model(inputs).logits)[reliable]
            kept = worst[worst.detach() < margin]
            if len(kept) == 0:
                return numbers
            loss = kept.mean()
            self._backward(loss)
        self.optimizer.step()
        numbers |= {"kept": float(len(kept)), "loss": loss.item()}
        if self._has_collapsed(numbers["loss"], logits.shape[1]):
            self._start_over()
            numbers["reset"] = 1.0
        return numbers

    def _entropy(self, logits: Tensor) -> Tensor:
        entropy = softmax_entropy(logits)
        checked_loss("SAR", self.optimizer, entropy.detach().mean())
        return entropy

    def _backward(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]

    def _has_collapsed(self, loss: float, classes: int) -> bool:
        self.average = follow(self.average, loss)
        given = self.reset_below
        return self.average < (reset_threshold(classes) if given == "auto" else given)

    def _start_over(self) -> None:
        """Restore the source weights, without momentum and without an average."""
        self.origin.restore(self.optimizer)
        self.average = None


def reset_threshold(classes: int) -> float:
    """Return e₀ for a number of classes: the paper's 0.2 for 1,000, in proportion to ln(classes).

    Reliable samples of few classes have little entropy from the start: for 7 classes 0.2 is a
    quarter of E₀, and a healthy model is below it.

    >>> [round(reset_threshold(classes), 3) for classes in (7, 10, 200, 1000)]
    [0.056, 0.067, 0.153, 0.2]
    """
    return 0.2 * math.log(classes) / math.log(1000)
