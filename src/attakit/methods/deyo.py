"""DeYO: lower the entropy of samples whose answer depends on the shape of the object.

Lee et al., "Entropy is not enough for test-time adaptation: from the perspective of disentangled
factors", ICLR 2024, section 4 (pseudo-label probability difference under a transformation that
destroys the object, two filters, two weights). https://openreview.net/forum?id=9w3iw8wDuE

Differences from the reference code: which last layers stay fixed depends on the structure of the
model, not on the names of its layers. All margins depend on the number of classes. Images may have
any shape, and inputs that are not images have their values shuffled. A diverged model raises an
error instead of finding nothing to learn from.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn

from attakit.errors import check_count, check_range
from attakit.methods.gradient import GradientMethod, OptimizerName
from attakit.nn.augment import shuffle_patches
from attakit.nn.entropy import softmax_entropy
from attakit.nn.norm import StreamNorm
from attakit.nn.seeding import torch_generator
from attakit.nn.trainable import early_norm_parameters
from attakit.records import Prediction, Step
from attakit.train.descent import checked_loss, descend


class DeYO(GradientMethod):
    """Lowers the entropy of sure samples that are less sure with shuffled patches.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the gradient step on normalisation scales and shifts.
    optimizer
        "sgd", or "adam" with the momentum as β₁.
    entropy_share
        τ_Ent: a sample may count if its entropy is below this share of ln(classes).
    difference_bound
        τ_PLPD: it counts if the probability of its predicted class falls by more than this when its
        patches are shuffled. The paper has 0.2, 0.3 for batch norm and mild shifts, and 0.5 for
        spurious correlations.
    weight_share
        Ent₀: entropy, as a share of ln(classes), at which the entropy weight is 1.
    patches
        Patches along each side of an image.
    left_out
        Share of the blocks at the model's end whose norm layers do not train, as in SAR.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.
    seed
        Seed of the shuffled patches.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> sorted(DeYO(tiny_classifier()).step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'sure']
    """

    stateful = ("model", "optimizer", "window", "looks")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        entropy_share: float = 0.5,
        difference_bound: float = 0.2,
        weight_share: float = 0.4,
        patches: int = 4,
        left_out: float = 0.25,
        norm: StreamNorm = "batch",
        window: int = 0,
        seed: int = 0,
    ) -> None:
        check_range("DeYO", "left_out", left_out, at_least=0, at_most=1)
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
        check_range("DeYO", "entropy_share", entropy_share, at_least=0, at_most=1)
        check_range("DeYO", "difference_bound", difference_bound, at_least=-1, at_most=1)
        check_range("DeYO", "weight_share", weight_share, at_least=0, at_most=1)
        check_count("DeYO", "patches", patches)
        self.entropy_share = entropy_share
        self.difference_bound = difference_bound
        self.weight_share = weight_share
        self.patches = patches
        self.seed = seed
        self.looks = 0  # batches with shuffled patches

    def adapt(self, inputs: Tensor) -> Step:
        answer: Prediction = self.model(inputs)
        entropy = softmax_entropy(answer.logits)
        checked_loss("DeYO", self.optimizer, entropy.detach().mean())
        largest = math.log(answer.logits.shape[1])
        sure = entropy.detach() < self.entropy_share * largest
        numbers = {"sure": float(sure.sum()), "kept": 0.0}
        if sure.any():
            difference = self._difference(inputs[sure], answer.logits.detach()[sure])
            kept = difference > self.difference_bound
            numbers["kept"] = float(kept.sum())
            if kept.any():
                loss = self._loss(entropy[sure][kept], difference[kept], largest)
                numbers["loss"] = descend("DeYO", self.optimizer, loss)
        return Step(answer.detach(), numbers=numbers)

    def _difference(self, inputs: Tensor, logits: Tensor) -> Tensor:
        """Return how much the predicted class loses without the object's shape (PLPD)."""
        random = torch_generator(self.seed, "patches", self.looks, device=inputs.device)
        self.looks += 1
        shuffled = self.place(shuffle_patches(inputs, random, patches=self.patches))
        classes = logits.argmax(dim=1, keepdim=True)
        before = logits.softmax(dim=1).gather(1, classes)
        after = self.answer(self.model, shuffled).logits.softmax(dim=1).gather(1, classes)
        return (before - after).flatten()

    def _loss(self, entropy: Tensor, difference: Tensor, largest: float) -> Tensor:
        """Entropy with weights e^(Ent₀ - H) + e^PLPD."""
        weights = (self.weight_share * largest - entropy.detach()).exp() + difference.exp()
        return torch.mean(weights * entropy)
