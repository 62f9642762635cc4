"""The order in which samples of several domains arrive.

An order is a pure function from domains and a seed to an arrangement. `ORDERS` lists them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from attakit.errors import check_count, check_range, unknown_name, unknown_setting
from attakit.randomness import generator
from attakit.stream.samples import Domains


class Place(NamedTuple):
    """One place of a stream, and its sample.

    Examples
    --------
    >>> Place("night", 7, "night@2", visit=2).position
    7
    """

    domain: str
    position: int
    segment: str
    visit: int = 1  # above 1 if the same sample was in the stream before


Arrangement = tuple[Place, ...]


def domain_after_domain(domains: Domains, *, seed: int = 0) -> Arrangement:
    """Arrange one domain after the other, shuffled inside."""
    return tuple(
        Place(domain, position, domain)
        for domain in domains.parts
        for position in _shuffled(domains, domain, seed)
    )


def random_splits(domains: Domains, *, seed: int = 0, splits: int = 4) -> Arrangement:
    """Shuffle all domains together and cut them into equal splits.

    The last split takes the remainder. The paper uses four splits, named 1 to 4.
    """
    total = sum(len(part.names) for part in domains.parts.values())
    check_count("random", "splits", splits, at_most=total)
    places = domain_after_domain(domains, seed=seed)
    order = generator(seed, "order", "all").permutation(total)
    return tuple(
        places[at]._replace(segment=str(min(rank // (total // splits), splits - 1) + 1))
        for rank, at in enumerate(order)
    )


def gradual(domains: Domains, *, seed: int = 0, overlap: float = 1.0) -> Arrangement:
    """Fade each domain into the next: the chance to see the next one rises linearly.

    Parameters
    ----------
    overlap
        Length of a fade as a share of the smaller of its two domains. With 1, equally large domains
        fade all the time; with 0 nothing is mixed.
    """
    check_range("gradual", "overlap", overlap, at_least=0, at_most=1)
    names = list(domains.parts)
    waiting = {name: _shuffled(domains, name, seed) for name in names}
    fades = [
        int(overlap * min(len(waiting[old]), len(waiting[new])) / 2) for old, new in pairwise(names)
    ]
    places: list[Place] = []
    taken = 0
    for number, name in enumerate(names):
        leaving = fades[number] if number < len(fades) else 0
        own = waiting[name]
        stay = len(own) - leaving
        places += [Place(name, position, name) for position in own[taken:stay]]
        if leaving:
            following = names[number + 1]
            places += _fade(name, own[stay:], following, waiting[following][:leaving], seed)
        taken = leaving
    return tuple(places)


def recurring(domains: Domains, *, seed: int = 0, rounds: int = 2) -> Arrangement:
    """Arrange all domains one after the other, several times, each time shuffled differently.

    From the second visit on, segments and sample names end in the number of the visit: `day@2`.
    """
    check_count("recurring", "rounds", rounds)
    return tuple(
        Place(domain, position, _visited(domain, visit), visit)
        for visit in range(1, rounds + 1)
        for domain in domains.parts
        for position in _shuffled(domains, domain, seed, visit)
    )


def correlated(
    domains: Domains, *, seed: int = 0, concentration: float = 0.1, chunks: int = 10
) -> Arrangement:
    """Arrange domain after domain, with labels that are correlated in time.

    Each domain is cut into chunks. A Dirichlet distribution spreads the samples of a class over the
    chunks, so a chunk has few classes.

    Parameters
    ----------
    concentration
        Concentration of the Dirichlet distribution. Small: nearly one class at a time. Large: no
        correlation.
    chunks
        Chunks per domain.
    """
    check_range("correlated", "concentration", concentration, above=0)
    check_count("correlated", "chunks", chunks)
    return tuple(
        Place(domain, position, domain)
        for domain in domains.parts
        for position in _in_chunks(domains, domain, seed, concentration, chunks)
    )


Order = Callable[..., Arrangement]

ORDERS: dict[str, Order] = {
    "domain_after_domain": domain_after_domain,
    "random": random_splits,
    "gradual": gradual,
    "recurring": recurring,
    "correlated": correlated,
}


def arrange(
    domains: Domains,
    order: str = "domain_after_domain",
    *,
    seed: int = 0,
    settings: Mapping[str, float] | None = None,
) -> Arrangement:
    """Arrange domains in an order given by name, with the order's own settings.

    Examples
    --------
    >>> two = Domains.from_arrays(("a",), {"x": (np.zeros((2, 1)), [0, 0])})
    >>> [place.segment for place in arrange(two, "recurring", settings={"rounds": 2})]
    ['x', 'x', 'x@2', 'x@2']
    """
    given = settings or {}
    check_order(order, given)
    return ORDERS[order](domains, seed=seed, **given)


def check_order(order: str, settings: Mapping[str, float]) -> None:
    """Raise `SettingError` unless the order exists and has these settings.

    >>> check_order("random", {"split": 2})
    Traceback (most recent call last):
        ...
    attakit.errors.SettingError: random: unknown setting 'split'. Did you mean 'splits'? Known:
    splits.
    """
    if order not in ORDERS:
        raise unknown_name("order", order, ORDERS)
    known = list(inspect.signature(ORDERS[order]).parameters)[2:]
    for name in settings:
        if name not in known:
            raise unknown_setting(order, name, known)


def _visited(name: str, visit: int) -> str:
    return name if visit == 1 else f"{name}@{visit}"


def _shuffled(domains: Domains, domain: str, seed: int, visit: int = 1) -> list[int]:
    count = len(domains.parts[domain].names)
    shuffled: list[int] = (
        generator(seed, "order", _visited(domain, visit)).permutation(count).tolist()
    )
    return shuffled


def _fade(
    old: str, leaving: Sequence[int], new: str, coming: Sequence[int], seed: int
) -> Iterator[Place]:
    # Times with density 2(1 - t) for the old domain and 2t for the new one: at time t the
    # probability that a sample is from the new domain is t.
    draws = generator(seed, "fade", f"{old}/{new}").random((2, len(leaving)))
    moments = np.concatenate([1 - np.sqrt(draws[0]), np.sqrt(draws[1])])
    both = [(old, position) for position in leaving] + [(new, position) for position in coming]
    for at in np.argsort(moments, kind="stable"):
        domain, position = both[at]
        yield Place(domain, position, f"{old}→{new}")


def _in_chunks(
    domains: Domains, domain: str, seed: int, concentration: float, chunks: int
) -> list[int]:
    draw = generator(seed, "correlated", domain)
    order = np.array(_shuffled(domains, domain, seed))
    labels = np.asarray(domains.parts[domain].labels)[order]
    chunk_of = np.zeros(len(order), dtype=np.int64)
    for label in np.unique(labels):
        shares = draw.dirichlet(np.full(chunks, concentration))
        members = np.flatnonzero(labels == label)
        chunk_of[members] = draw.choice(chunks, size=len(members), p=shares)
    # A stable sort keeps the shuffled order inside each chunk.
    places: list[int] = order[np.argsort(chunk_of, kind="stable")].tolist()
    return places
