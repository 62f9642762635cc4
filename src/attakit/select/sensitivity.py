"""Sensitivity: the sample whose answer changes most, with turns for classes. EATTA asks with it.

Wang and Ding, "Effortless active labeling for long-term test-time adaptation", CVPR 2025, section
3. https://arxiv.org/abs/2503.14564
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of


class Sensitivity:
    """Ask about the sample with the highest score, unless its class had its turn.

    A class that was asked about recently passes if its score is below that of its last question.
    Then the turn goes to the best sample of a class that was not asked about recently, if any.

    Parameters
    ----------
    scores
        How sensitive the answer to each sample is.
    asked_scores
        Score with which each class, by its number as a text, was last asked about.
    recent
        Classes that were asked about recently.

    Examples
    --------
    >>> import torch
    >>> logits = torch.eye(2)
    >>> rows = Rows(("a", "b"), logits, logits, torch.ones(2))
    >>> turns = Sensitivity({"a": 0.3, "b": 0.1}, asked_scores={"0": 0.4}, recent=[0])
    >>> turns.select(rows, rows.take([]), limit=1, step=0).samples
    ('b',)
    """

    def __init__(
        self,
        scores: Mapping[str, float],
        asked_scores: Mapping[str, float] | None = None,
        recent: Sequence[int] = (),
    ) -> None:
        self.scores = scores
        self.asked_scores = asked_scores or {}
        self.recent = recent

    def passes(self, kind: int, score: float) -> bool:
        """True if a sample of a class passes its turn."""
        return kind in self.recent and score < self.asked_scores.get(str(kind), -math.inf)

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, the most sensitive class whose turn it is first."""
        del step
        classes = candidates.logits.argmax(dim=1).tolist()
        score = [self.scores[sample] for sample in candidates.samples]
        order = sorted(askable(candidates, known), key=lambda place: -score[place])
        if order and self.passes(classes[order[0]], score[order[0]]):
            order.sort(key=lambda place: classes[place] in self.recent)
        return selection_of(candidates, order[: max(limit, 0)])
