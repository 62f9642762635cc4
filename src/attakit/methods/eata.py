"""EATA: lower the entropy of reliable samples unlike earlier ones, without forgetting.

Niu et al., "Efficient test-time model adaptation without forgetting", ICML 2022.
https://arxiv.org/abs/2204.02610

Two mistakes of public ports are avoided here. The Fisher information measures what matters to the
source, so it is estimated on source inputs. Ports for other data sets estimate it on the future
stream, which peeks ahead and protects the wrong knowledge. Margins made for 1,000 classes are not
used for 7: both depend on the number of classes. As everywhere in this library, the answer comes
from the pass before the update, and dropout is off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attakit.errors import SettingError, check_count, check_range
from attakit.methods.gradient import GradientMethod, OptimizerName
from attakit.methods.moving_average import follow
from attakit.nn.entropy import softmax_entropy
from attakit.nn.fisher import FisherPenalty, diagonal_fisher
from attakit.nn.norm import StreamNorm
from attakit.records import Step
from attakit.train.descent import checked_loss, descend

FISHER_ALPHA, FISHER_SAMPLES = 2000.0, 2000  # from the paper, for ImageNet


class EATA(GradientMethod):
    """Lowers the entropy of reliable, new samples, and protects what matters to the source.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum, optimizer
        Settings of the gradient step on normalisation scales and shifts: "sgd", or "adam", whose β₁
        is the momentum.
    reliable_share
        A sample counts as reliable if its entropy is below E₀, this share of ln(classes).
    redundancy_margin
        ε: a reliable sample counts as new if the cosine between its probabilities and the moving
        average is below it. "auto" derives it from the number of classes (`redundancy_margin`).
    source_inputs
        Inputs like those the model was trained on, for the Fisher information. They are used once
        and not stored. Without them there is no regulariser, and the method is the paper's ETA.
    fisher_alpha
        β: weight of the regulariser. The paper has 2000 for ImageNet and 1 for CIFAR-10. 0 omits
        it, as in ETA.
    fisher_samples
        Maximum number of source inputs to use.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = EATA(tiny_classifier(), source_inputs=tiny_batch(9).inputs)
    >>> sorted(method.step(tiny_batch(), Allowance(0)).numbers)
    ['kept', 'reliable']
    """

    stateful: ClassVar[tuple[str, ...]] = ("model", "optimizer", "window", "average", "penalty")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        reliable_share: float = 0.4,
        redundancy_margin: float | Literal["auto"] = "auto",
        source_inputs: Tensor | None = None,
        fisher_alpha: float = FISHER_ALPHA,
        fisher_samples: int = FISHER_SAMPLES,
        norm: StreamNorm = "batch",
        window: int = 0,
    ) -> None:
        super().__init__(
            model, lr=lr, momentum=momentum, optimizer=optimizer, norm=norm, window=window
        )
        who = type(self).__name__
        check_range(who, "reliable_share", reliable_share, at_least=0, at_most=1)
        check_range(who, "fisher_alpha", fisher_alpha, at_least=0)
        check_count(who, "fisher_samples", fisher_samples)
        if redundancy_margin != "auto":
            check_range(who, "redundancy_margin", redundancy_margin, at_least=0, at_most=1)
        self.reliable_share = reliable_share
        self.redundancy_margin = redundancy_margin
        self.fisher_alpha = fisher_alpha
        self.average: Tensor | None = None  # mean probabilities of the training samples
        known = source_inputs is not None and fisher_alpha > 0
        inputs = _checked(source_inputs)[:fisher_samples] if known else None
        fisher = [] if inputs is None else diagonal_fisher(self.model, self.trained, inputs)
        self.penalty = FisherPenalty(self.trained, fisher)

    @staticmethod
    def source_input_count(settings: Mapping[str, Any]) -> int:
        """Return how many source inputs these settings can use."""
        if settings.get("fisher_alpha", FISHER_ALPHA) == 0:
            return 0
        count: int = settings.get("fisher_samples", FISHER_SAMPLES)
        return count

    def adapt(self, inputs: Tensor) -> Step:
        answer = self.model(inputs)
        entropy = softmax_entropy(answer.logits)
        checked_loss(type(self).__name__, self.optimizer, entropy.detach().mean())
        margin = self.reliable_share * math.log(answer.logits.shape[1])
        probabilities = answer.logits.detach().softmax(dim=1)
        reliable = entropy.detach() < margin
        kept = reliable & self._is_new(probabilities)
        numbers = {"reliable": float(reliable.sum()), "kept": float(kept.sum())}
        if numbers["kept"]:
            self.average = follow(self.average, probabilities[kept].mean(dim=0))
            numbers["loss"] = self._descend(entropy[kept], margin)
        return Step(answer.detach(), numbers=numbers)

    def _is_new(self, probabilities: Tensor) -> Tensor:
        """Mark answers that are unlike the moving average; all of them if there is none."""
        if self.average is None:
            return torch.ones(len(probabilities), dtype=torch.bool, device=probabilities.device)
        given, classes = self.redundancy_margin, probabilities.shape[1]
        margin = redundancy_margin(classes) if given == "auto" else given
        return F.cosine_similarity(self.average, probabilities).abs() < margin

    def _descend(self, entropy: Tensor, margin: float) -> float:
        """Take one step on exp(E₀ - H) H, which favours sure samples, and on the regulariser."""
        loss = ((margin - entropy.detach()).exp() * entropy).mean()
        if len(self.penalty):
            loss = loss + self.fisher_alpha * self.penalty()
        return descend(type(self).__name__, self.optimizer, loss)


def redundancy_margin(classes: int) -> float:
    """Return ε for a number of classes: a power law through the paper's 0.4 (10) and 0.05 (1,000).

    A sure answer has a cosine of 1/√C with the average over C equally frequent classes. So with few
    classes, a margin made for many would reject nearly everything.

    >>> [round(redundancy_margin(classes), 2) for classes in (7, 10, 65, 200, 1000)]
    [0.47, 0.4, 0.17, 0.1, 0.05]
    """
    return min(1.0, 0.4 * math.pow(classes / 10, -math.log(8) / math.log(100)))


def _checked(inputs: object) -> Tensor:
    if isinstance(inputs, Tensor) and len(inputs):
        return inputs
    raise SettingError(
        "EATA: source_inputs must be a tensor with one row per input, got "
        f"{tuple(inputs.shape) if isinstance(inputs, Tensor) else repr(inputs)}. Leave it out to "
        "disable the regulariser."
    )
