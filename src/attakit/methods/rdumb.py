"""RDumb: ETA with a periodic reset.

Press, Schneider, Kümmerer and Bethge, "RDumb: A simple approach that questions our progress in
continual test-time adaptation", NeurIPS 2023, section 4. https://arxiv.org/abs/2306.05401
ETA is EATA without the Fisher regulariser (Niu et al., ICML 2022; see `attakit.methods.eata`).

Differences from the public code: both margins depend on the number of classes, as in EATA, while
that code has those of 1,000 classes. As in that code, a reset clears momentum and the moving
average too, and every batch counts, even if nothing is learned from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor, nn

from attakit.errors import check_count
from attakit.methods.eata import EATA
from attakit.methods.gradient import OptimizerName
from attakit.nn.norm import StreamNorm
from attakit.nn.origin import Origin
from attakit.records import Step


class RDumb(EATA):
    """Lowers the entropy of reliable, new samples, and resets to the source every N batches.

    Parameters
    ----------
    model
        Classifier to adapt; it is copied.
    lr, momentum, optimizer
        Settings of the gradient step on normalisation scales and shifts: "sgd", or "adam", whose β₁
        is the momentum.
    reliable_share
        A sample counts as reliable if its entropy is below this share of ln(classes).
    redundancy_margin
        A reliable sample counts as new if the cosine between its probabilities and the moving
        average is below it. "auto" derives it from the number of classes.
    reset_every
        N: batches after which the model starts over. With a window, updates count instead.
    norm
        Statistics of batch-norm layers: "batch", or "blended" (the source's mixed with those of
        recent batches, in a proportion that fits the first samples).
    window
        Minimum number of samples per update. Smaller batches are filled up with earlier samples.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> method = RDumb(tiny_classifier(), reset_every=2)
    >>> [method.step(tiny_batch(step), Allowance(0)).numbers["reset"] for step in range(4)]
    [0.0, 1.0, 0.0, 1.0]
    """

    stateful = (*EATA.stateful, "origin", "adapted")

    def __init__(
        self,
        model: nn.Module,
        *,
        lr: float = 2.5e-4,
        momentum: float = 0.9,
        optimizer: OptimizerName = "sgd",
        reliable_share: float = 0.4,
        redundancy_margin: float | Literal["auto"] = "auto",
        reset_every: int = 1000,
        norm: StreamNorm = "batch",
        window: int = 0,
    ) -> None:
        super().__init__(
            model,
            lr=lr,
            momentum=momentum,
            reliable_share=reliable_share,
            redundancy_margin=redundancy_margin,
            fisher_alpha=0.0,
            optimizer=optimizer,
            norm=norm,
            window=window,
        )
        check_count("RDumb", "reset_every", reset_every)
        self.reset_every = reset_every
        self.adapted = 0  # batches since the last reset
        self.origin = Origin(self.trained)

    @staticmethod
    def source_input_count(settings: Mapping[str, Any]) -> int:
        """Return 0: ETA has no regulariser."""
        del settings
        return 0

    def adapt(self, inputs: Tensor) -> Step:
        step = super().adapt(inputs)
        self.adapted += 1
        is_due = self.adapted >= self.reset_every
        if is_due:
            self.start_over()
        return Step(step.prediction, numbers={**step.numbers, "reset": float(is_due)})

    def start_over(self) -> None:
        """Restore the source weights, without momentum and without an average."""
        self.origin.restore(self.optimizer)
        self.average = None
        self.adapted = 0
