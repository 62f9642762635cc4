"""Test-batch statistics: normalise with the batch at hand instead of the source ("BN w/ adapt").

Schneider et al., "Improving robustness against common corruptions by covariate shift adaptation",
NeurIPS 2020; Nado et al., "Evaluating prediction-time batch normalization for robustness under
covariate shift", 2020.
"""

from __future__ import annotations

from torch import nn

from attakit.methods.base import BaseMethod


class BatchNorm(BaseMethod):
    """Answers with batch-norm statistics of the batch itself; learns nothing.

    A model without batch-norm layers answers as the source model does.

    Parameters
    ----------
    model
        Classifier to use; it is copied.

    Examples
    --------
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> BatchNorm(tiny_classifier()).step(tiny_batch(), allowance=0).prediction.logits.shape
    torch.Size([8, 3])
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model)
        self.model.use_norm("batch")
