"""All domains as one pool, with a step for every round of questions."""

from __future__ import annotations

import torch

from attakit.errors import check_count
from attakit.records import Batch
from attakit.stream.batches import Stream
from attakit.stream.joined import Joined
from attakit.stream.order import domain_after_domain
from attakit.stream.samples import Domains


class Rounds(Stream):
    """A stream of empty batches, one per round; the samples are in `pool`, all from the start.

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
        # For names and labels only: in a pool, no sample comes before another.
        super().__init__(domains, domain_after_domain(domains), batch_size=1)
        check_count("Rounds", "rounds", rounds)
        self._rounds = rounds
        self.pool = Joined(list(domains.parts.values()))

    def __len__(self) -> int:
        """Number of rounds."""
        return self._rounds

    def _batch(self, step: int) -> Batch:
        return Batch(step, (), torch.zeros((0, *self.pool.shape)))
