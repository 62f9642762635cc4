"""The loss on people's answers: labels, exclusions, candidate sets, soft and weighted ones."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from attakit.records import LabelledRows


def answer_loss(logits: Tensor, rows: LabelledRows, places: Tensor | None = None) -> Tensor:
    """Return the mean loss on rows, or on those at some places, weighted by their answers.

    It is cross-entropy for a label and for a soft answer, -log(1 - p) for an excluded class, and
    -log of the total probability of several candidates.

    Parameters
    ----------
    logits
        The model's logits for the rows, or for those at the places.
    rows
        What people said about them.
    places
        Positions of rows, one for each row of the logits. None means all.

    Examples
    --------
    >>> import torch
    >>> from attakit.targets import Targets
    >>> row = torch.zeros(1, 2)
    >>> no = Targets.of_exclusions(torch.tensor([0]), classes=2)
    >>> rows = LabelledRows(("a",), row, torch.tensor([-1]), row, row, torch.ones(1), targets=no)
    >>> round(answer_loss(torch.tensor([[0.9, 0.1]]).log(), rows).item(), 3)  # -log(1 - 0.9)
    2.303
    """
    if rows.targets is None:
        return F.cross_entropy(logits, rows.labels if places is None else rows.labels[places])
    targets = rows.targets if places is None else rows.targets.take(places)
    return (targets.weights * targets.losses(logits)).mean()
