"""GetW(λ): the weights of source-like and labelled anchors in the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attakit.errors import SettingError, check_count, check_range
from attakit.train.optimal_weight import optimal_low_weight


def low_share(low_count: int, high_count: int) -> float:
    """λ₀ = |D_l| / (|D_l| + |D_h|) (SimATTA, Algorithm 1, line 6).

    Examples
    --------
    >>> low_share(3, 1)
    0.75
    """
    return low_count / (low_count + high_count) if low_count else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """Chooses w₀, the loss weight of the source-like anchors; the labelled ones get 1 - w₀.

    Parameters
    ----------
    rule
        "share": w₀ = λ₀, the paper's choice. "optimal": the minimiser of the paper's bound on the
        target error (equation 4, corrected). A number: that fixed weight.
    divergence
        A of the bound, for "optimal": the distance between source and target, from 0 to about 2.
    complexity
        c₁²d of the bound, for "optimal": B² = complexity / N.
    cold_start_size, cold_start_high_share
        If there are fewer source-like anchors than this, the labelled ones get at most this weight,
        so that a few labels do not change the whole model. The paper does not have it; the public
        code has the rule, with 0.2.

    Examples
    --------
    >>> Weighting().low_weight(low_count=300, high_count=100)
    0.75
    """

    rule: str | float = "share"
    divergence: float = 0.5
    complexity: float = 100.0
    cold_start_size: int = 100
    cold_start_high_share: float = 0.2

    def __post_init__(self) -> None:
        if isinstance(self.rule, str):
            if self.rule not in ("share", "optimal"):
                raise SettingError(
                    f"Weighting: rule must be 'share', 'optimal' or a number from 0 to 1, "
                    f"got {self.rule!r}."
                )
        else:
            check_range("Weighting", "rule", self.rule, at_least=0, at_most=1)
        check_range("Weighting", "divergence", self.divergence, at_least=0)
        check_range("Weighting", "complexity", self.complexity, above=0)
        check_count("Weighting", "cold_start_size", self.cold_start_size, at_least=0)
        check_range(
            "Weighting", "cold_start_high_share", self.cold_start_high_share, at_least=0, at_most=1
        )

    def low_weight(self, low_count: int, high_count: int) -> float:
        """Return w₀ for these numbers of anchors."""
        weight = self._by_rule(low_share(low_count, high_count), low_count + high_count)
        if low_count < self.cold_start_size:
            weight = max(weight, 1 - self.cold_start_high_share)
        return weight

    def _by_rule(self, share: float, count: int) -> float:
        if self.rule == "share":
            return share
        if self.rule == "optimal":
            gap = math.sqrt(self.complexity / count)
            return float(optimal_low_weight(share, self.divergence, gap))
        return float(self.rule)
