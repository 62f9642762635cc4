"""Smallest margin first: samples between two classes.

Scheffer, Decomain and Wrobel, "Active hidden Markov models for information extraction", IDA 2001;
as "margin sampling" in Settles, "Active learning literature survey", 2009, section 3.1.
"""

from __future__ import annotations

from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.finite import check_finite


class SmallestMargin:
    """Asks about samples whose two most likely classes are nearly as likely. Every weight is 1.

    The margin of a sample is p(ŷ₁) - p(ŷ₂), the probabilities of its two most likely classes.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[9.0, 0.0, 0.0], [5.0, 5.0, 0.0], [1.0, 0.0, 0.0]])
    >>> candidates = Rows(("sure", "torn", "so so"), logits, logits, torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 3), torch.zeros(0, 3), torch.zeros(0))
    >>> SmallestMargin().select(candidates, nothing, limit=2, step=0).samples
    ('torn', 'so so')
    """

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, smallest margin first."""
        del step
        likeliest = candidates.logits.float().softmax(dim=1).topk(2, dim=1).values
        check_finite("SmallestMargin", "logits", likeliest)
        margins = (likeliest[:, 0] - likeliest[:, 1]).tolist()
        order = sorted(askable(candidates, known), key=lambda position: margins[position])
        return selection_of(candidates, order[: max(limit, 0)])
