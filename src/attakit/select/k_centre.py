"""k-centre: ask about the samples farthest from all known ones.

Sener and Savarese, "Active learning for convolutional neural networks: a core-set approach",
ICLR 2018, Algorithm 1 (k-Center-Greedy). https://arxiv.org/abs/1708.00489
"""

from __future__ import annotations

import torch
from torch import Tensor

from attakit.records import Rows, Selection
from attakit.select.askable import askable, selection_of
from attakit.select.finite import check_finite

_KNOWN_AT_ONCE = 64  # known samples per distance computation


class KCentre:
    """Asks repeatedly about the sample farthest from known and chosen ones.

    If nothing is known, the sample nearest the mean comes first. Every weight is 1.

    Examples
    --------
    >>> features = torch.tensor([[0.0], [1.0], [6.0], [9.0]])
    >>> candidates = Rows(tuple("abcd"), features, torch.zeros(4, 2), torch.ones(4))
    >>> known = Rows(("k",), torch.zeros(1, 1), torch.zeros(1, 2), torch.ones(1))
    >>> KCentre().select(candidates, known, limit=2, step=0).samples
    ('d', 'c')
    """

    def select(self, candidates: Rows, known: Rows, limit: int, step: int) -> Selection:
        """Choose at most `limit` candidates, farthest first."""
        del step
        positions = askable(candidates, known)
        count = min(limit, len(positions))
        if count <= 0:
            return Selection()
        chosen = farthest_first(_points(candidates)[positions], _points(known), count)
        return selection_of(candidates, [positions[row] for row in chosen])


def farthest_first(points: Tensor, centres: Tensor, count: int) -> list[int]:
    """Return rows of points, each the farthest from the centres and the rows before it."""
    nearest = torch.full((len(points),), torch.inf, dtype=points.dtype)
    for part in torch.split(centres, _KNOWN_AT_ONCE) if len(centres) else ():
        nearest = torch.minimum(nearest, _distances(points, part).amin(dim=1))
    chosen = [int(nearest.argmax()) if len(centres) else _middle(points)]
    while len(chosen) < count:
        last = points[chosen[-1:]]
        nearest = torch.minimum(nearest, _distances(points, last)[:, 0])
        nearest[chosen] = -1  # never again, even if only copies are left
        chosen.append(int(nearest.argmax()))
    return chosen


def _middle(points: Tensor) -> int:
    return int(_distances(points, points.mean(dim=0, keepdim=True)).argmin())


def _points(rows: Rows) -> Tensor:
    # On the CPU in double precision, so that every device makes the same choice.
    points = rows.features.detach().cpu().double()
    check_finite("KCentre", "features", points)
    return points


def _distances(points: Tensor, centres: Tensor) -> Tensor:
    # Differences first: a copy of a centre must be at distance zero.
    return torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist")
