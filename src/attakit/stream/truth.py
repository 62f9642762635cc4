"""What is really true about the samples of a stream. For oracle and scorer, never for methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attakit.errors import StreamError
from attakit.queries import SampleId


@dataclass(frozen=True)
class Truth:
    """Label, domain and segment of every sample of a stream.

    Parameters
    ----------
    labels
        Class index of each sample.
    domains
        Domain each sample comes from.
    segments
        Stretch of the stream in which each sample appears: a domain, a split, a visit.
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
