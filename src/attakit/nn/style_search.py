"""Find groups of one style, and decide which of them are source samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from attakit.nn.gaussians import Array, Card, Gaussians, Projection, best_mixture
from attakit.nn.stored_card import StoredStatistics

GAIN = 0.3  # nats per sample that another group must gain beyond BIC
_DIRECTIONS = 10  # principal directions of style in which to find groups
_HOME_LOSS = 1.5  # nats per sample by which the source may describe its own group worse
# Nats by which the source is ahead of other groups. Other styles are much farther away, but
# slightly unusual source samples are not.
_AHEAD = 5.0
_AHEAD_WITHOUT_CARD = 8.0  # there the shape of the source's cloud is only guessed


@dataclass(frozen=True, slots=True)
class FoundStyles:
    """Groups of one style.

    Parameters
    ----------
    projection, groups
        Directions of style, and the groups in them.
    source
        Source samples as one Gaussian in these directions, weighted by their lead over groups; None
        if nothing is known about them.
    home
        For each group, True if its members are source samples.
    """

    projection: Projection
    groups: Gaussians
    source: Gaussians | None = None
    home: tuple[bool, ...] = ()


def find_styles(rows: Array, most: int, known: Card | StoredStatistics | None) -> FoundStyles:
    """Find groups of one style.

    Parameters
    ----------
    rows
        Style vectors, one for each sample.
    most
        Maximum number of groups.
    known
        What is known about source samples.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(60, 4))
    >>> find_styles(rows, most=4, known=Card.of(rows)).home
    (True,)
    """
    card = known if isinstance(known, Card) else None
    projection = Projection.of(rows, card, _DIRECTIONS)
    groups = best_mixture(projection(rows), most, GAIN)
    if known is None:
        return FoundStyles(projection, groups)
    if card is not None:
        return _with_source(FoundStyles(projection, groups), card, rows, _AHEAD)
    assert isinstance(known, StoredStatistics)
    members = groups.members(projection(rows))
    card = known.card(rows, members)
    # Directions in which the source differs from the stream were not included before.
    projection = Projection.of(rows, card, _DIRECTIONS)
    groups = Gaussians.of_members(members, projection(rows))
    return _with_source(FoundStyles(projection, groups), card, rows, _AHEAD_WITHOUT_CARD)


def parameters(rows: Array) -> float:
    """Return the parameters of one Gaussian. Its fit is inflated by about half of them."""
    return float(rows.shape[1] * (rows.shape[1] + 3) / 2)


def _with_source(found: FoundStyles, card: Card, styles: Array, ahead: float) -> FoundStyles:
    source, rows = Gaussians.of_card(card, found.projection), found.projection(styles)
    home = _at_home(found.groups, source, rows)
    return replace(found, source=replace(source, weights=np.exp([ahead])), home=home)


def _at_home(groups: Gaussians, source: Gaussians, rows: Array) -> tuple[bool, ...]:
    """Return which groups are source samples: the card describes their members nearly as well."""
    members, joint = groups.members(rows), groups.joint(rows) - np.log(groups.weights)
    mass = members.sum(axis=0)
    loss = (members * (joint - source.likelihoods(rows)[:, None])).sum(axis=0) / mass
    return tuple((loss < _HOME_LOSS + parameters(rows) / mass).tolist())
