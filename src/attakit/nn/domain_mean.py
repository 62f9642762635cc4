"""The mean of features in the current domain, and when a new domain begins. No labels needed.

If a stream mixes styles, every style group has its own mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attakit.nn.styles import Grouping

_MEAN_SAMPLES = 233  # samples in the mean: a batch of 100 then has a weight of 0.3
_SETTLED = 32  # samples before a new domain's mean replaces the old one
_CHUNK = 32  # samples that a comparison needs
_HISTORY = 2  # comparisons in a domain before an alarm is possible
_CHANCE = 2  # comparisons that the expected distance of 1 counts for
_LATEST = 20  # comparisons that are kept
_SMALLEST = 1e-6


@dataclass(frozen=True, slots=True)
class DomainState:
    """The current knowledge about the domain.

    Parameters
    ----------
    before
        Mean of the previous domain by group, or zeros.
    mean, count
        Mean of the current domain by group, and its number of samples.
    spread
        Variance in the current domain, summed over features.
    chunk_sum, chunk_count
        Samples since the last comparison.
    distances
        Latest comparisons in this domain, all without an alarm.
    domains
        Domains seen so far.
    """

    before: Tensor  # (groups, dim)
    mean: Tensor  # (groups, dim)
    spread: float
    count: Tensor  # (groups,)
    chunk_sum: Tensor  # (dim,)
    chunk_count: int
    distances: tuple[float, ...] = ()
    domains: int = 1

    @property
    def centre(self) -> Tensor:
        """What to subtract from features by group: the mean, if it has enough samples."""
        return self.before.lerp(self.mean, (self.count / _SETTLED).clamp(max=1)[:, None])


class DomainMean:
    """Follows the mean of features, and starts over if they change abruptly.

    Batches of any size are compared with the current domain, 32 samples or more at a time. The
    distance is the squared difference of means relative to chance. So it is about 1 without a
    change, and less if batch statistics are mixed in.

    Parameters
    ----------
    factor
        The multiple of the usual distance that counts as a change. The usual distance is the median
        in this domain, drawn towards 1 while there are few.

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

    def after(self, rows: Tensor, grouping: Grouping | None = None) -> DomainState:
        """Return the state after more rows, without storing it."""
        members = rows.new_ones(len(rows), 1) if grouping is None else grouping.members.to(rows)
        state = self.state or _start(rows)
        if grouping is not None and grouping.moved is not None and self.state is not None:
            state = _regrouped(state, grouping.moved.to(rows), novel=grouping.novel)
        if self.state is None or members.shape[1] > 1 or len(state.mean) > 1:
            # With several styles a new one appears as a new group, not as a jump of the mean.
            return replace(_follow(state, rows, members), chunk_count=0, distances=())
        return self._compare(_add(state, rows), rows, members)

    def keep(self, state: DomainState) -> None:
        """Make a state the current one."""
        self.state = state

    def move(self, distance: Tensor | float) -> None:
        """Let the means follow features that moved because weights changed."""
        if self.state is not None:
            state, count = self.state, self.state.chunk_count
            self.state = replace(
                state,
                before=state.before + distance,
                mean=state.mean + distance,
                chunk_sum=state.chunk_sum + count * distance,
            )

    def _compare(self, state: DomainState, rows: Tensor, members: Tensor) -> DomainState:
        if state.chunk_count < _CHUNK:
            return _follow(state, rows, members)
        chunk = state.chunk_sum / state.chunk_count
        known = max(float(state.count), 1.0)
        fair = 1 / (1 / state.chunk_count + 1 / known)
        distance = fair * float((chunk - state.mean).square().sum()) / max(state.spread, 1e-12)
        fresh = replace(state, chunk_sum=torch.zeros_like(chunk), chunk_count=0)
        if self._is_new(distance, state.distances):
            return replace(
                fresh,
                before=state.centre,
                mean=chunk[None],
                spread=_spread(rows) if len(rows) > 1 else state.spread,
                count=torch.full_like(state.count, float(state.chunk_count)),
                distances=(),
                domains=state.domains + 1,
            )
        kept = (*state.distances, distance)[-_LATEST:]
        return _follow(replace(fresh, distances=kept), rows, members)

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


def _start(rows: Tensor) -> DomainState:
    """Return the state before any rows."""
    zeros = torch.zeros_like(rows[:1])
    return DomainState(zeros, zeros, 0.0, zeros.new_zeros(1), zeros[0], 0)


def _add(state: DomainState, rows: Tensor) -> DomainState:
    return replace(
        state,
        chunk_sum=state.chunk_sum + rows.sum(dim=0),
        chunk_count=state.chunk_count + len(rows),
    )


def _spread(rows: Tensor) -> float:
    return float((rows - rows.mean(dim=0)).square().sum(dim=1).mean())


def _regrouped(state: DomainState, moved: Tensor, *, novel: bool) -> DomainState:
    """Return the same means by new groups, which took mass from old ones."""
    shares = moved / moved.sum(dim=1, keepdim=True).clamp(min=_SMALLEST)
    return replace(
        state,
        before=shares @ state.centre,
        mean=shares @ state.mean,
        count=(moved / moved.sum(dim=0).clamp(min=_SMALLEST)) @ state.count,
        domains=state.domains + int(novel),
    )


def _follow(state: DomainState, rows: Tensor, members: Tensor) -> DomainState:
    """Move the means of groups, and the spread, towards those of new rows."""
    if members.shape[1] > len(state.mean):  # the first batch
        state = _regrouped(state, members.new_ones(members.shape[1], 1), novel=False)
    count = members.sum(dim=0)
    means = (members / count.clamp(min=_SMALLEST)).T @ rows
    known = state.count.clamp(max=float(_MEAN_SAMPLES))
    share = count / (known + count).clamp(min=_SMALLEST)
    gaps = (means - state.mean).square().sum(dim=1)
    inside = float((rows - members @ means).square().sum(dim=1).mean())
    part = float(count.sum() / (known + count).sum().clamp(min=_SMALLEST))
    between = float((share * (1 - share) * gaps) @ (count / count.sum().clamp(min=_SMALLEST)))
    return replace(
        state,
        mean=state.mean.lerp(means, share[:, None]),
        spread=(1 - part) * state.spread + part * inside + between,
        count=known + count,
    )
