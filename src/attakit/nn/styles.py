"""Groups of samples with the same style, found in a stream without labels.

The style of an image is the first layer's summary of it: mean and variance of each channel.
Colours, strokes and blur affect it, and the class hardly does. Samples of one domain form one
cloud, so a mixture of Gaussians finds the domains in a batch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from attakit.errors import check_count
from attakit.nn.gaussians import Array, Card, Gaussians, Projection
from attakit.nn.norm import moments
from attakit.nn.one_thread import one_thread
from attakit.nn.stored_card import StoredStatistics
from attakit.nn.style_memory import lasting_places, latest_places
from attakit.nn.style_search import GAIN, find_styles, parameters
from attakit.queries import SampleId

if TYPE_CHECKING:
    from attakit.nn.second_look import Looked, SecondLook

_FEWEST = 32  # samples before the first search
_GROWTH = 1.5  # search again when this many times more samples have been seen
_FRESH = 0.6  # share of a new group's members among the latest samples
_ENOUGH = 8  # samples that can form a new group
_SMALLEST = 1e-6
_LARGEST = 1e4
_CHECKED = 400  # latest samples that groups are fitted to


_PACKED = {"projection": Projection, "groups": Gaussians, "source": Gaussians}


def style_vectors(activations: Tensor) -> Tensor:
    """Mean and log variance of each channel over the positions of each sample.

    >>> style_vectors(torch.tensor([[[1.0, 3.0]]])).tolist()
    [[2.0, 0.0]]
    """
    axes = tuple(range(2, activations.ndim))
    mean, variance = moments(activations.float(), axes)
    return torch.cat([mean, variance.clamp(min=_SMALLEST).log()], dim=1)


def bounded(styles: Tensor) -> Tensor:
    """Limit extreme values, so that one sample does not spoil the rest: it counts as very far away.

    >>> bounded(torch.tensor([[float("inf"), float("nan"), 1.0]])).tolist()
    [[10000.0, 0.0, 1.0]]
    """
    return styles.nan_to_num(0.0).clamp(-_LARGEST, _LARGEST)


@dataclass(frozen=True, slots=True)
class StyleState:
    """What is known about the styles of a stream.

    Parameters
    ----------
    memory
        Style vectors of the latest samples.
    seen, fitted_at
        Samples seen, and their number at the last search.
    projection, groups
        Directions of style, and the groups in them; None before the first search.
    source
        Source samples as one Gaussian in these directions; None if nothing is known about them.
    home
        For each group, True if its members are source samples.
    """

    memory: Tensor
    seen: int
    fitted_at: int = 0
    projection: Projection | None = None
    groups: Gaussians | None = None
    source: Gaussians | None = None
    home: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Grouping:
    """Membership of the samples of one batch in groups.

    Parameters
    ----------
    members
        Membership of each sample in each group; rows add up to 1.
    home
        Probability of each sample to be from the source; zeros if nothing is known about it.
    moved
        After a new search: the mass that each new group (row) took from each old one (column). None
        if groups did not change.
    novel
        True if the batch brings a new style.
    state
        The state after the batch.
    kept
        Places of the samples in the state's memory, among those before and those of the batch.
    second
        What a second look found; None if no sample needed one.
    """

    members: Tensor  # (batch, groups)
    home: Tensor  # (batch,)
    moved: Tensor | None
    novel: bool
    state: StyleState
    kept: Sequence[int]
    second: Looked | None = None

    @property
    def is_plain(self) -> bool:
        """True if all samples are of one style, and none from the source."""
        return self.members.shape[1] == 1 and not bool(self.home.any())


class StyleGroups:
    """Finds how many styles a stream mixes, and how much each sample belongs to each.

    Groups are searched for among the latest samples, when enough new ones arrived or when the
    newest are unlike all groups. The number of groups has the best Bayesian information criterion,
    and each further group must pay off clearly.

    Parameters
    ----------
    most
        Maximum number of groups at a time. With 1 there is no search.
    window
        Number of latest samples to remember.
    card
        What style vectors of source samples look like, or their stored batch-norm statistics. With
        it, `Grouping.home` says which samples are from the source.
    second
        Checks that for samples that seem to be from the source. None takes the first look's word.
    lasting
        Remember some samples of every time, not only the latest. So groups last while the stream
        has other styles.

    Examples
    --------
    >>> random = torch.Generator().manual_seed(0)
    >>> styles = torch.randn(80, 4, generator=random)
    >>> styles[40:] += 20
    >>> groups = StyleGroups()
    >>> found = groups.after(styles)
    >>> found.members.shape, bool((found.members[0] != found.members[79]).all())
    (torch.Size([80, 2]), True)
    """

    def __init__(
        self,
        *,
        most: int = 4,
        window: int = 600,
        card: Card | StoredStatistics | None = None,
        second: SecondLook | None = None,
        lasting: bool = False,
    ) -> None:
        check_count("StyleGroups", "most", most, at_least=1)
        check_count("StyleGroups", "window", window, at_least=_FEWEST)
        self.most = most
        self.window = window
        self.card = card
        self.second = second
        self.lasting = lasting
        self.samples: tuple[SampleId, ...] = ()  # the samples of the stored style vectors
        self.state: StyleState | None = None

    def after(self, styles: Tensor, inputs: Tensor | None = None) -> Grouping:
        """Return the membership of samples in groups, without storing the state after them.

        A second look needs the inputs too.
        """
        styles = bounded(styles.detach().cpu().float())
        state, kept = self._remember(styles)
        moved, novel = None, False
        if self._is_due(state) or _is_unlike(state, len(styles)):
            state, moved = self._look(state)
            # In a lasting memory, a style that is not new also has few samples of other times.
            more = moved.shape[0] > moved.shape[1]
            novel = _has_new_group(state, len(styles)) and (more or not self.lasting)
        home, second = _home(state, styles), None
        if self.second is not None and inputs is not None:
            second = self.second.after(home, inputs)
            home = torch.zeros_like(home) if second is None else second.home
        return Grouping(_members(state, styles), home, moved, novel, state, kept, second)

    def recall(self, styles: Tensor) -> Grouping:
        """Return the membership of stored samples in the known groups, without a new search."""
        styles = bounded(styles.detach().cpu().float())
        state = self.state or StyleState(styles[:0], 0)
        return Grouping(_members(state, styles), _home(state, styles), None, False, state, ())

    def keep(self, grouping: Grouping, samples: Sequence[SampleId] = ()) -> None:
        """Make the state after a batch the current one. Named samples can be forgotten."""
        self.state = grouping.state
        names = (*self.samples, *(samples or [SampleId("")] * len(grouping.members)))
        self.samples = tuple(names[place] for place in grouping.kept)
        if self.second is not None and grouping.second is not None:
            self.second.keep(grouping.second, samples)

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove the style vectors of samples from the memory."""
        if self.state is not None:
            kept = [place for place, name in enumerate(self.samples) if name not in samples]
            self.state = replace(self.state, memory=self.state.memory[kept])
            self.samples = tuple(self.samples[place] for place in kept)
        if self.second is not None:
            self.second.forget(samples)

    def _remember(self, styles: Tensor) -> tuple[StyleState, Sequence[int]]:
        """Return the state with new samples in memory, and the places that are kept."""
        state = self.state or StyleState(styles[:0], 0)
        known, new = len(state.memory), len(styles)
        memory = torch.cat([state.memory, styles])
        kept: Sequence[int]
        if self.lasting:
            kept = lasting_places(known, new, self.window, state.seen)
            memory = memory[kept]
        else:
            kept = latest_places(known, new, self.window)
            memory = memory[kept[0] :]
        return replace(state, memory=memory, seen=state.seen + new), kept

    def _is_due(self, state: StyleState) -> bool:
        if len(state.memory) < _FEWEST or (self.most == 1 and self.card is None):
            return False
        since = state.seen - state.fitted_at
        return state.seen >= _GROWTH * state.fitted_at or since >= self.window

    @one_thread()
    def _look(self, state: StyleState) -> tuple[StyleState, Tensor]:
        """Search for groups among the latest samples."""
        latest = state.memory if self.lasting else state.memory[-_CHECKED:]
        old = _members(state, latest)
        found = find_styles(latest.double().numpy(), self.most, self.card)
        state = replace(
            state,
            fitted_at=state.seen,
            projection=found.projection,
            groups=found.groups,
            source=found.source,
            home=found.home,
        )
        return state, _members(state, latest).T @ old

    def state_dict(self) -> dict[str, Any]:
        if self.state is None:
            return {}
        packed = {**asdict(self.state), "samples": list(map(str, self.samples))}
        for name in _PACKED:
            if packed[name] is not None:
                packed[name] = {
                    key: torch.from_numpy(np.ascontiguousarray(each))
                    for key, each in packed[name].items()
                }
        if self.second is not None:
            packed["second"] = self.second.state_dict()
        return packed

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        state = dict(state)
        second = state.pop("second", {})  # states of earlier versions have none
        if self.second is not None:
            self.second.load_state_dict(second)
        if not state:
            self.state, self.samples = None, ()
            return
        self.samples = tuple(map(SampleId, state.pop("samples")))
        for name, kind in _PACKED.items():
            if state.get(name) is not None:  # states of earlier versions have no source
                state[name] = kind(*(each.numpy() for each in state[name].values()))
        self.state = StyleState(**state)


def _is_unlike(state: StyleState, latest: int) -> bool:
    """True if a separate group describes the latest samples much better."""
    if state.groups is None:
        return False
    rows = _projected(state, state.memory[-max(latest, _FEWEST) :])
    own = Gaussians.fitted(rows).likelihoods(rows)
    gain = float((own - state.groups.likelihoods(rows)).mean())
    return gain > GAIN + parameters(rows) / len(rows)


def _has_new_group(state: StyleState, latest: int) -> bool:
    """True if nearly all members of a group are among the latest samples."""
    latest = max(latest, _FEWEST)
    if len(state.memory) < 2 * latest:
        return False
    members = _members(state, state.memory)
    fresh, mass = members[-latest:].sum(dim=0), members.sum(dim=0)
    return bool(((fresh > _ENOUGH) & (fresh > _FRESH * mass)).any())


def _projected(state: StyleState, styles: Tensor) -> Array:
    assert state.projection is not None
    return state.projection(styles.double().numpy())


def _home(state: StyleState, styles: Tensor) -> Tensor:
    """Return the probability of each sample to be from the source, against other styles."""
    if state.source is None or state.groups is None:
        return torch.zeros(len(styles))
    rows = _projected(state, styles)
    joint = np.where(state.home, -np.inf, state.groups.joint(rows))
    against = np.logaddexp.reduce(joint, axis=1)
    return torch.from_numpy(state.source.likelihoods(rows) - against).sigmoid().float()


def _members(state: StyleState, styles: Tensor) -> Tensor:
    if state.groups is None:
        return torch.ones(len(styles), 1)
    return torch.from_numpy(state.groups.members(_projected(state, styles))).float()
