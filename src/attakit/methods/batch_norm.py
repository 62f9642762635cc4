"""Test-batch statistics: normalise with the batch instead of the source ("BN w/ adapt").

Schneider et al., "Improving robustness against common corruptions by covariate shift adaptation",
NeurIPS 2020, section 2 (with `source_samples` as N); Nado et al., "Evaluating prediction-time batch
normalization for robustness under covariate shift", 2020.

Differs from common public code: all other layers are in evaluation mode, so dropout is off.
"""

from __future__ import annotations

from torch import nn

from attakit.errors import SettingError, check_choice, check_range
from attakit.methods.windowed import WindowedMethod
from attakit.nn.norm import STREAM_NORMS, StreamNorm, use_batch_statistics


class BatchNorm(WindowedMethod):
    """Answers with batch-norm statistics of the batch itself; learns nothing.

    A model without batch-norm layers answers like the source model.

    Parameters
    ----------
    model
        Classifier to use; it is copied.
    source_samples
        N: how many samples the stored statistics count for, next to those of the batch. 0 ignores
        them; small batches do better with some, for example 16.
    norm
        "batch", or "blended": the source's statistics mixed with those of recent batches, in a
        proportion that fits the first samples.
    window
        Minimum number of samples per pass. Smaller batches are filled up with earlier samples. 0
        uses batches as they come.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> BatchNorm(tiny_classifier()).step(tiny_batch(), Allowance(0)).prediction.logits.shape
    torch.Size([8, 3])
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        source_samples: float = 0.0,
        norm: StreamNorm = "batch",
        window: int = 0,
    ) -> None:
        super().__init__(model, window=window)
        check_range("BatchNorm", "source_samples", source_samples, at_least=0)
        check_choice("BatchNorm", "norm", norm, STREAM_NORMS)
        if norm == "blended" and source_samples:
            raise SettingError(
                'BatchNorm: norm "blended" finds its own share of the stored statistics, got '
                f"source_samples = {source_samples}. Leave one of them out."
            )
        self.model.use_norm(norm, source_share="auto")
        if norm == "batch":
            use_batch_statistics(self.model, source_samples=source_samples)
