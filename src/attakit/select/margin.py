"""Smallest margin first: samples between two classes.

Scheffer, Decomain and Wrobel, "Active hidden Markov models for information extraction", IDA 2001;
as "margin sampling" in Settles, "Active learning literature survey", 2009, section 3.1.
"""

from __future__ import annotations

from attakit.records import Rows, Selection
from attakit.select.finite import check_finite
from attakit.select.pace import First, Pace, PerStep, askable, selection_of


class SmallestMargin:
    """Ask about the samples whose two likeliest classes are nearly as likely. Every weight is 1.

    The margin of a sample is p(ŷ₁) - p(ŷ₂), the probabilities of its two likeliest classes.

    Parameters
    ----------
    first
        Labels at step 0; "unlimited" asks for as many as are allowed.
    per_step
        Labels at each later step, or "unlimited". Fractions add up: 0.5 asks at every other step.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[9.0, 0.0, 0.0], [5.0, 5.0, 0.0], [1.0, 0.0, 0.0]])
    >>> candidates = Rows(("sure", "torn", "so so"), logits, logits, torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 3), torch.zeros(0, 3), torch.zeros(0))
    >>> SmallestMargin(first=2).select(candidates, nothing, limit=10, step=0).samples
    ('torn', 'so so')
    """

    def __init__(self, *, first: First = 10, per_step: PerStep = 1.0) -> None:
        self.pace = Pace("SmallestMargin", first=first, per_step=per_step)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, smallest margin first."""
        likeliest = candidates.logits.float().softmax(dim=1).topk(2, dim=1).values
        check_finite("SmallestMargin", "logits", likeliest)
        margins = (likeliest[:, 0] - likeliest[:, 1]).tolist()
        order = sorted(askable(candidates, known), key=lambda position: margins[position])
        return selection_of(candidates, order[: self.pace.allowed(limit, step)])
