"""Highest entropy first: SimATTA without its clustering ("IC = 0" in the paper's ablation)."""

from __future__ import annotations

from attakit.nn.entropy import softmax_entropy
from attakit.records import Rows, Selection
from attakit.select.finite import check_finite
from attakit.select.pace import First, Pace, PerStep, askable, selection_of


class HighestEntropy:
    """Ask about the samples whose prediction is least sure. Every weight is 1.

    Parameters
    ----------
    first
        Labels at step 0; "unlimited" asks for as many as are allowed.
    per_step
        Labels at each later step, or "unlimited". Fractions add up: 0.5 asks at every other step.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[9.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    >>> candidates = Rows(("sure", "unsure", "so so"), logits, logits, torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 2), torch.zeros(0, 2), torch.zeros(0))
    >>> HighestEntropy(first=2).select(candidates, nothing, limit=10, step=0).samples
    ('unsure', 'so so')
    """

    def __init__(self, *, first: First = 10, per_step: PerStep = 1.0) -> None:
        self.pace = Pace("HighestEntropy", first=first, per_step=per_step)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, least sure first."""
        entropies = softmax_entropy(candidates.logits)
        check_finite("HighestEntropy", "logits", entropies)
        values = entropies.tolist()
        order = sorted(askable(candidates, known), key=lambda position: -values[position])
        return selection_of(candidates, order[: self.pace.allowed(limit, step)])
