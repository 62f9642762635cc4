"""Source only: the trained model with its stored statistics ("BN w/o adapt")."""

from __future__ import annotations

from attakit.methods.base import BaseMethod


class SourceOnly(BaseMethod):
    """Answers with the source model and never changes.

    Parameters
    ----------
    model
        Classifier to use; it is copied.

    Examples
    --------
    >>> from attakit.queries import Allowance
    >>> from attakit.testing import tiny_batch, tiny_classifier
    >>> SourceOnly(tiny_classifier()).step(tiny_batch(), Allowance(0)).prediction.logits.shape
    torch.Size([8, 3])
    """
