"""K-margin: uncertain samples that are far apart.

Li et al., "Exploring human-in-the-loop test-time adaptation by synergizing active learning and
model selection", TMLR 2025, the part on sample selection. https://arxiv.org/abs/2405.18911

Written from the paper. One difference: known samples count as centres from the start, so that a
sample similar to an open question is not asked about. With nothing known the choice is the paper's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.finite import check_finite
from attakit.select.k_centre import farthest_first


class KMargin:
    """Asks about samples that are farthest apart, with uncertain samples moved outwards.

    The features of each sample are scaled by 1 - (p(ŷ₁) - p(ŷ₂)), where p(ŷ₁) and p(ŷ₂) are the
    probabilities of its two most likely classes. So a sure sample is near zero. Then k-centre
    greedy begins at zero: each choice is the sample farthest from zero, from known samples and from
    earlier choices. Every weight is 1.

    Examples
    --------
    >>> features = torch.tensor([[9.0], [2.0], [-1.0]])
    >>> logits = torch.tensor([[9.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> candidates = Rows(("sure", "torn", "torn too"), features, logits, torch.ones(3))
    >>> nothing = Rows((), torch.zeros(0, 1), torch.zeros(0, 2), torch.zeros(0))
    >>> KMargin().select(candidates, nothing, limit=2, step=0).samples
    ('torn', 'torn too')
    """

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, farthest first."""
        del step
        positions = askable(candidates, known)
        count = min(limit, len(positions))
        if count <= 0:
            return Selection()
        points = scaled_by_margin(candidates)
        zero = torch.zeros_like(points[:1])
        centres = torch.cat([zero, scaled_by_margin(known)]) if len(known) else zero
        chosen = farthest_first(points[positions], centres, count)
        return selection_of(candidates, [positions[row] for row in chosen])


def scaled_by_margin(rows: Rows) -> Tensor:
    """Return the features times 1 minus the margin of the prediction.

    >>> logits = torch.tensor([[0.75, 0.25]]).log()
    >>> scaled_by_margin(Rows(("a",), torch.ones(1, 2), logits, torch.ones(1)))
    tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    likeliest = rows.logits.detach().cpu().double().softmax(dim=1).topk(2, dim=1).values
    margins = likeliest[:, :1] - likeliest[:, 1:]
    points = rows.features.detach().cpu().double() * (1 - margins)
    check_finite("KMargin", "features and logits", points)
    return points
