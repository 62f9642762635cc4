"""Evidence that people use the classes' own names, and not a wrong code.

People with a code call every class by another class's name: every dog is a "cat", and so on. The
source model agrees with such people more often after its classes are renamed in the same way. This
holds if it is right more often than it makes the code's own confusions. So honest people must agree
with the source model more often than with every renamed one. To reject each renaming alone is
enough: the true code would have to be among those rejected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from attakit.service.learner.honesty import GROUPS, Opinion, entropy_ranks
from attakit.service.learner.sequences import Counts, count_needed, log_e_value, log_mean_exp

# There are 2 codes for three classes and 9 for four, but 44 for five and ever more. With many, a
# code that follows the source model's confusions is improbable, and the proof takes honest people
# too many answers.
FEW_CLASSES = 4
_FIRST_LOOK = 25  # answers; the next looks are after twice as many


@dataclass(frozen=True, slots=True)
class Names:
    """How strong the evidence for the classes' own names is."""

    log_e: float  # logarithm of the greatest e-value against the best renaming
    groups: tuple[Counts, ...]  # 1: own name, -1: name by the best renaming, 0: another one

    @property
    def renamed_share(self) -> float:
        """Share of the answers that the best renaming explains."""
        return self.groups[0][-1.0] / max(1.0, sum(self.groups[0].values()))

    def missing(self, confidence: float) -> int | None:
        """Estimate how many more answers are needed; None if such answers are never enough."""
        totals = [
            math.ceil(needed / share)
            for share, seen in zip(GROUPS, self.groups, strict=True)
            if sum(seen.values())
            and (needed := count_needed(seen, 0.0, -1.0, confidence)) is not None
        ]
        return max(1, min(totals) - round(sum(self.groups[0].values()))) if totals else None


def own_names(said: Sequence[Opinion], classes: int) -> Names:
    """Compare agreement with the source model to agreement with its best renaming.

    Only answers of the audit count. The method chooses samples by a model that may have learned the
    code, and on those the source model can make the code's confusions. The money is split between
    all answers, the surer half and the surest quarter, as in `source_agreement`. What was proven at
    an earlier look stays proven.

    Examples
    --------
    >>> honest = [Opinion(n % 3, n % 3, 0.1) for n in range(12)]
    >>> coded = [Opinion((n + 1) % 3, n % 3, 0.1) for n in range(12)]
    >>> own_names(honest, classes=3).log_e > math.log(10) > 0 > own_names(coded, classes=3).log_e
    True
    """
    said = [one for one in said if one.audited]
    ranks = entropy_ranks([one.entropy for one in said])
    groups = tuple(_compare(said, ranks, share, classes) for share in GROUPS)
    looks = [_log_e(groups)]
    count = _FIRST_LOOK
    while count < len(said):
        looks.append(_log_e([_compare(said[:count], ranks, share, classes) for share in GROUPS]))
        count *= 2
    return Names(max(looks), groups)


def _log_e(groups: Sequence[Counts]) -> float:
    return float(log_mean_exp(np.array([[log_e_value(seen, 0.0, -1.0)] for seen in groups]))[0])


def _compare(
    said: Sequence[Opinion], ranks: Sequence[float], share: float, classes: int
) -> dict[float, float]:
    """Count own names and names by the best renaming, on the surest share of the samples."""
    table = np.zeros((classes, classes))
    total = 0
    for one, rank in zip(said, ranks, strict=False):
        if rank < share:
            total += 1
            if one.label is not None:
                table[one.guess, one.label] += 1
    own = float(np.trace(table))
    other = min(_best_renaming(table), total - own)
    return {1.0: own, -1.0: other, 0.0: total - own - other}


def _best_renaming(table: NDArray[np.float64]) -> float:
    """The most answers that a renaming explains which leaves no class its own name.

    The first answer of each kind only shows the renaming, so it does not count. Otherwise, of many
    classes, answers that all differ would fit some renaming perfectly.
    """
    hits = np.clip(table - 1, 0, None)
    np.fill_diagonal(hits, -table.sum() - 1)  # no class keeps its name
    rows, columns = linear_sum_assignment(hits, maximize=True)
    return float(np.clip(hits[rows, columns], 0, None).sum())
