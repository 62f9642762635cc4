"""The mean of features in the present domain, and when a new domain begins. No labels needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

_MEAN_SAMPLES = 233  # that the mean looks back on: a batch of 100 then has a weight of 0.3
_SETTLED = 32  # samples before a new domain's mean replaces the old one
_CHUNK = 32  # samples that a comparison needs
_HISTORY = 2  # comparisons in a domain before an alarm is possible
_CHANCE = 2  # comparisons that the expected distance of 1 counts for
_LATEST = 20  # comparisons that are kept


@dataclass(frozen=True, slots=True)
class DomainState:
    """What is known of the present domain.

    Parameters
    ----------
    before
        Mean of the domain before, or zeros.
    mean, spread, count
        Mean and variance (summed over features) of the present domain, and samples behind them.
    chunk_sum, chunk_count
        Samples since the last comparison.
    distances
        Latest comparisons in this domain, all without an alarm.
    domains
        Domains seen so far.
    """

    before: Tensor
    mean: Tensor
    spread: float
    count: float
    chunk_sum: Tensor
    chunk_count: int
    distances: tuple[float, ...] = ()
    domains: int = 1

    @property
    def centre(self) -> Tensor:
        """What to subtract from features: the mean, once enough samples are behind it."""
        return self.before.lerp(self.mean, min(1.0, self.count / _SETTLED))


class DomainMean:
    """Follows the mean of features, and starts again where they change at once.

    Batches of any size are compared with the present domain, 32 samples or more at a time. The
    distance is the squared difference of means in units of what chance would give, so that it is
    about 1 without a change, and less where batch statistics are mixed in.

    Parameters
    ----------
    factor
        How many times the usual distance counts as a change. The usual one is the median in this
        domain, drawn towards 1 while there are few.

    Examples
    --------
    >>> tracker = DomainMean()
    >>> random = torch.Generator().manual_seed(0)
    >>> for step in range(8):
    ...     shift = 0.0 if step < 4 else 5.0
    ...     tracker.keep(tracker.after(torch.randn(40, 3, generator=random) + shift))
    >>> tracker.state.domains
    2
    """

    def __init__(self, *, factor: float = 6.0) -> None:
        self.factor = factor
        self.state: DomainState | None = None

    def after(self, rows: Tensor) -> DomainState:
        """The state after more rows, which is not kept yet."""
        mean = rows.mean(dim=0)
        spread = float((rows - mean).square().sum(dim=1).mean())
        if self.state is None:
            zeros = torch.zeros_like(mean)
            return DomainState(zeros, mean, spread, float(len(rows)), zeros, 0)
        return self._compare(_add(self.state, rows), mean, spread, len(rows))

    def keep(self, state: DomainState) -> None:
        """Make a state the present one."""
        self.state = state

    def _compare(self, state: DomainState, mean: Tensor, spread: float, count: int) -> DomainState:
        if state.chunk_count < _CHUNK:
            return _follow(state, mean, spread, count)
        chunk = state.chunk_sum / state.chunk_count
        fair = 1 / (1 / state.chunk_count + 1 / max(state.count, 1.0))
        gap = float((chunk - state.mean).square().sum())
        distance = fair * gap / max(state.spread, 1e-12)
        fresh = replace(state, chunk_sum=torch.zeros_like(chunk), chunk_count=0)
        if self._is_new(distance, state.distances):
            return replace(
                fresh,
                before=state.centre,
                mean=chunk,
                spread=spread if count > 1 else state.spread,
                count=float(state.chunk_count),
                distances=(),
                domains=state.domains + 1,
            )
        kept = (*state.distances, distance)[-_LATEST:]
        return _follow(replace(fresh, distances=kept), mean, spread, count)

    def _is_new(self, distance: float, usual: tuple[float, ...]) -> bool:
        if len(usual) < _HISTORY:
            return False
        median = float(torch.tensor(usual).median())
        expected = (len(usual) * median + _CHANCE) / (len(usual) + _CHANCE)
        return distance > self.factor * expected

    def state_dict(self) -> dict[str, Any]:
        if self.state is None:
            return {}
        return {**asdict(self.state), "distances": list(self.state.distances)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if not state:
            self.state = None
        else:
            self.state = DomainState(**{**state, "distances": tuple(state["distances"])})


def _add(state: DomainState, rows: Tensor) -> DomainState:
    return replace(
        state,
        chunk_sum=state.chunk_sum + rows.sum(dim=0),
        chunk_count=state.chunk_count + len(rows),
    )


def _follow(state: DomainState, mean: Tensor, spread: float, count: int) -> DomainState:
    """Move the mean and the spread towards those of new rows."""
    known = min(state.count, float(_MEAN_SAMPLES))
    share = count / (known + count)
    between = share * (1 - share) * float((mean - state.mean).square().sum())
    return replace(
        state,
        mean=state.mean.lerp(mean, share),
        spread=(1 - share) * state.spread + share * spread + between,
        count=known + count,
    )
