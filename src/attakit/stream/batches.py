"""Streams: batches of inputs and sample names. Labels and domains are separate, in `Truth`."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import torch

from attakit.errors import StreamError, check_count
from attakit.queries import SampleId
from attakit.records import Batch
from attakit.stream.order import Arrangement, Place, domain_after_domain
from attakit.stream.samples import Domains, Joined, load_from


@dataclass(frozen=True)
class Truth:
    """The true labels and domains of a stream. For oracle and scorer, never for methods.

    Parameters
    ----------
    labels
        Class index of each sample.
    domains
        The domain of each sample.
    segments
        The part of the stream in which each sample appears: a domain, a split, a visit.
    classes
        Class names, by index.

    Examples
    --------
    >>> truth = Truth({"a": 1}, {"a": "night"}, {"a": "night@2"}, ("cat", "dog"))
    >>> truth.classes[truth.labels["a"]]
    'dog'
    """

    labels: Mapping[SampleId, int]
    domains: Mapping[SampleId, str]
    segments: Mapping[SampleId, str]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.labels.keys() == self.domains.keys() == self.segments.keys():
            raise StreamError(
                f"Truth: labels, domains and segments must name the same samples, got "
                f"{len(self.labels)}, {len(self.domains)} and {len(self.segments)} of them."
            )


class Stream:
    """Batches of an arrangement of domains.

    Iteration yields `Batch` objects, loaded one at a time. The last may be smaller. True labels and
    domains are in `truth`, for oracle and scorer only.

    Parameters
    ----------
    domains
        The domains of the samples.
    arrangement
        The order of the samples, from one of the `ORDERS`.
    batch_size
        Samples per batch, at least 1.

    Examples
    --------
    >>> from attakit.stream import blobs, domain_after_domain
    >>> domains = blobs()
    >>> stream = Stream(domains, domain_after_domain(domains), batch_size=50)
    >>> len(stream)
    12
    >>> next(iter(stream)).inputs.shape
    torch.Size([50, 2])
    """

    def __init__(self, domains: Domains, arrangement: Arrangement, *, batch_size: int) -> None:
        check_count("Stream", "batch_size", batch_size)
        _check_places(domains, arrangement)
        self.batch_size = int(batch_size)
        self._domains = domains
        self._places = tuple(arrangement)
        self._names = tuple(_name(domains, place) for place in self._places)
        self._check_unique()
        self.truth = self._build_truth()

    def __len__(self) -> int:
        """Number of steps."""
        return -(-len(self._places) // self.batch_size)

    @property
    def sample_count(self) -> int:
        """Number of samples."""
        return len(self._places)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches()

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Iterate from a step on, without loading the batches before it."""
        check_count("Stream", "start", start, at_least=0, at_most=len(self))
        return (self._batch(step) for step in range(start, len(self)))

    @property
    def fingerprint(self) -> str:
        """A 12-letter hash of the samples and their order; batch size does not count."""
        return hashlib.sha256("\n".join(self._names).encode()).hexdigest()[:12]

    def originals(self, samples: Collection[SampleId]) -> set[SampleId]:
        """Return the names of samples in their domains, for any visit."""
        named = zip(self._names, self._places, strict=True)
        return {
            self._domains.parts[place.domain].names[place.position]
            for name, place in named
            if name in samples
        }

    def _batch(self, step: int) -> Batch:
        part = slice(step * self.batch_size, (step + 1) * self.batch_size)
        places = [(place.domain, place.position) for place in self._places[part]]
        return Batch(step, self._names[part], load_from(self._domains.parts, places))

    def _build_truth(self) -> Truth:
        parts = self._domains.parts
        named = list(zip(self._names, self._places, strict=True))
        return Truth(
            {name: parts[place.domain].labels[place.position] for name, place in named},
            {name: place.domain for name, place in named},
            {name: place.segment for name, place in named},
            self._domains.classes,
        )

    def _check_unique(self) -> None:
        if len(set(self._names)) < len(self._names):
            name, times = Counter(self._names).most_common(1)[0]
            raise StreamError(
                f"Stream: every sample may appear once, but '{name}' appears {times} times. "
                f"Places that repeat a sample must count their visit: visit=2, 3, …"
            )


class Rounds(Stream):
    """A stream of empty batches, one per round. The samples are in `pool` from the start.

    Parameters
    ----------
    domains
        The samples of the pool.
    rounds
        The number of steps.

    Examples
    --------
    >>> from attakit.stream import blobs
    >>> stream = Rounds(blobs(), 5)
    >>> len(stream), len(next(iter(stream))), len(stream.pool)
    (5, 0, 600)
    """

    def __init__(self, domains: Domains, rounds: int) -> None:
        # Only for names and labels: a pool has no order.
        super().__init__(domains, domain_after_domain(domains), batch_size=1)
        check_count("Rounds", "rounds", rounds)
        self._rounds = rounds
        self.pool = Joined(list(domains.parts.values()))

    def __len__(self) -> int:
        """Number of rounds."""
        return self._rounds

    def _batch(self, step: int) -> Batch:
        return Batch(step, (), torch.zeros((0, *self.pool.shape)))


def _name(domains: Domains, place: Place) -> SampleId:
    name = domains.parts[place.domain].names[place.position]
    return name if place.visit == 1 else SampleId(f"{name}@{place.visit}")


def _check_places(domains: Domains, arrangement: Arrangement) -> None:
    counts = {domain: len(samples.names) for domain, samples in domains.parts.items()}
    if not arrangement:
        raise StreamError("Stream: the arrangement is empty. Make one with arrange(domains, …).")
    for place in arrangement:
        if not 0 <= place.position < counts.get(place.domain, 0):
            raise StreamError(
                f"Stream: the arrangement asks for sample {place.position} of '{place.domain}', "
                "but the domains are "
                f"{', '.join(f'{name} ({count} samples)' for name, count in counts.items())}. "
                "Arrange the same domains that the stream gets."
            )
