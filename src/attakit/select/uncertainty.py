"""Highest entropy first: SimATTA without its clustering ("IC = 0" in the paper's ablation)."""

from __future__ import annotations

from attakit.nn.entropy import softmax_entropy
from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.finite import check_finite


class HighestEntropy:
    """Asks about the samples with the least sure prediction. Every weight is 1.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[9.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    >>> candidates = Rows(("sure", "unsure", "so so"), logits, logits, torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))
    >>> HighestEntropy().select(candidates, nothing, limit=2, step=0).samples
    ('unsure', 'so so')
    """

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, least sure first."""
        del step
        entropies = softmax_entropy(candidates.logits)
        check_finite("HighestEntropy", "logits", entropies)
        values = entropies.tolist()
        order = sorted(askable(candidates, known), key=lambda position: -values[position])
        return selection_of(candidates, order[: max(limit, 0)])
