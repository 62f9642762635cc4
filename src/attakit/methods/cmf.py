"""CMF: ROID with a moving source, filtered from the adapting weights.

Lee and Chang, "Continual momentum filtering on parameter space for online test-time adaptation",
ICLR 2024, section 3 (a Kalman filter with scalar variances over the weights).
https://openreview.net/forum?id=BllUWdpIOA

The loss and the prior correction are ROID's, as in the authors' code (see `attakit.methods.roid`
for the differences). That code forgets to reset the filter, which is not needed here.
"""

from __future__ import annotations

import torch
from torch import nn

from attakit.errors import check_range
from attakit.methods.gradient import OptimizerName
from attakit.methods.roid import ROID
from attakit.nn.norm import StreamNorm
from attakit.nn.origin import Origin
from attakit.nn.priors import PriorCorrection

REFERENCE_COUNT = 38_400  # scales and shifts of a ViT-B/16, for which the noise is published
LEAST_GAIN_KEPT, MOST_GAIN_KEPT = 0.89, 0.9999  # bounds of β in the authors' code


class CMF(ROID):
    """Raises the likelihood ratio of sure, diverse samples, pulled to a slowly moving source.

    A hidden model follows the adapting one like a Kalman filter, and is itself pulled to the
    source. After every update the adapting model is mixed with the hidden one.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum
        Settings of the gradient step on normalisation scales and shifts.
    optimizer
        "sgd", or "adam" as the authors' code has it for CIFAR (lr 1e-3), whose β₁ is the
        momentum.
    transition
        α: share of the hidden model that stays when it is pulled to the source.
    noise
        q: variance of the steps of the hidden model, for a model with 38,400 scales and shifts. It
        is scaled to the model's own number.
    hidden_share
        1 - γ: share of the hidden model that is mixed in after every update.
    temperature
        Weights are exp(diversity · certainty / temperature).
    consistency
        True if the answers to a random view must agree with those to the batch.
    prior_correction
        How answers follow the class frequencies of their batch: "logits", "probabilities", "none".
    mirror
        True if views may be mirrored. Use False if left and right matter: digits, text.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.
    seed
        Seed of the views.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> sorted(CMF(tiny_classifier()).step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'loss']
    """

    stateful = (*ROID.stateful, "hidden", "variance")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        transition: float = 0.99,
        noise: float = 0.005,
        hidden_share: float = 0.01,
        temperature: float = 1 / 3,
        consistency: bool = True,
        prior_correction: PriorCorrection = "logits",
        mirror: bool = True,
        norm: StreamNorm = "batch",
        window: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            model,
            lr=lr,
            momentum=momentum,
            optimizer=optimizer,
            temperature=temperature,
            consistency=consistency,
            prior_correction=prior_correction,
            mirror=mirror,
            norm=norm,
            window=window,
            seed=seed,
        )
        check_range("CMF", "transition", transition, at_least=0, at_most=1)
        check_range("CMF", "noise", noise, at_least=0, at_most=1)
        check_range("CMF", "hidden_share", hidden_share, at_least=0, at_most=1)
        count = sum(parameter.numel() for parameter in self.trained)
        self.transition = transition
        self.noise = min(noise * count / REFERENCE_COUNT, 1.0)
        self.hidden_share = hidden_share
        self.hidden = Origin(self.trained)
        self.variance = 0.0

    @torch.no_grad()
    def after_update(self) -> None:
        """Predict the hidden model, correct it with the adapting one, and mix both."""
        kept = self._gain_kept()
        triples = zip(self.hidden.values, self.origin.values, self.trained, strict=True)
        for hidden, source, parameter in triples:
            hidden.lerp_(source, 1 - self.transition)
            hidden.lerp_(parameter, 1 - kept)
        self.hidden.pull(self.hidden_share)
        self.update_count += 1

    def _gain_kept(self) -> float:
        """β: the share of the hidden model that stays. Updates the variance."""
        predicted = self.transition**2 * self.variance + self.noise
        kept = (1 - self.noise) / (predicted + 1 - self.noise)
        kept = max(kept, LEAST_GAIN_KEPT)
        kept = kept if kept < MOST_GAIN_KEPT else 1.0
        self.variance = kept * predicted
        return kept
