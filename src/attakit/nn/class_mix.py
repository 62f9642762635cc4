"""The mix of classes in a batch: answers that follow it, and whether it changes often."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_ROUNDS = 20
_BEFORE = 1.0  # samples of each class that every batch is thought to have

_RECENT = 6  # batches that a new one is compared with
_LATEST = 32  # batches whose evidence counts
_UNKNOWN = 0.5  # samples of each class in a mix before any is seen (Jeffreys)
_CHANGE = 0.3  # chance that a batch has a new mix, if classes come in runs
_MOST = 4.0  # nats of evidence by one batch: the first one of a domain has a new mix too
_RARE = 3.0  # nats against runs, before any batch is seen


def with_class_mix(chances: Tensor) -> Tensor:
    """Correct answers for the mix of classes in their batch, which the answers themselves show.

    Classes that the batch has more of become likelier for each of its samples: expectation
    maximisation as in Saerens, Latinne and Decaestecker, Neural Computation 14(1), 2002.

    Parameters
    ----------
    chances
        Probabilities, one row per sample of a batch.

    Examples
    --------
    >>> import torch
    >>> chances = torch.tensor([[0.9, 0.1]] * 20 + [[0.45, 0.55]])
    >>> with_class_mix(chances)[-1].argmax().item()
    0
    """
    found = chances
    for _ in range(_ROUNDS):
        found = chances * (found.sum(dim=0) + _BEFORE)
        found = found / found.sum(dim=1, keepdim=True)
    return found


class MixChanges:
    """Estimates whether the mix of classes changes from batch to batch, from answers alone.

    Two explanations of each batch are compared. It has the mix of the batches before it or of the
    last one, or it has a mix of its own. If classes come in runs, some batches need the second
    explanation. If they do not, hardly any does, even if the model is wrong in every batch.

    Examples
    --------
    >>> steady, runs = MixChanges(), MixChanges()
    >>> half, first, second = (torch.tensor([[share, 1 - share]] * 40) for share in (0.5, 0.9, 0.1))
    >>> for batch in (first, second, first, second):
    ...     steady.keep(half)
    ...     runs.keep(batch)
    >>> steady.probability(half) < 0.1, runs.probability(first) > 0.9
    (True, True)
    """

    def __init__(self) -> None:
        self.recent: list[Tensor] = []  # (classes,) each: samples by class, in fractions
        self.evidence: list[float] = []  # nats, by batch

    def probability(self, chances: Tensor) -> float:
        """Return the probability that classes come in runs, after one more batch of answers."""
        nats = sum(self.evidence) + self._evidence(_by_class(chances)) - _RARE
        return 1 / (1 + math.exp(-nats))

    def keep(self, chances: Tensor) -> None:
        """Count a batch: probabilities, one row per sample."""
        counts = _by_class(chances)
        self.evidence = [*self.evidence, self._evidence(counts)][-_LATEST:]
        self.recent = [*self.recent, counts][-_RECENT:]

    def new_domain(self) -> None:
        """Do not compare the next batch with those before it."""
        self.recent = []

    def state_dict(self) -> dict[str, Any]:
        return {"recent": torch.stack(self.recent) if self.recent else None, "nats": self.evidence}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        recent = state["recent"]
        self.recent = [] if recent is None else list(recent)
        self.evidence = list(state["nats"])

    def _evidence(self, counts: Tensor) -> float:
        if not self.recent:
            return 0.0
        last, before = self.recent[-1], torch.stack(self.recent).sum(dim=0)
        same = max(_log_evidence(counts, each) for each in (last, before))
        surprise = _log_evidence(counts, torch.zeros_like(last)) - same
        return min(math.log(1 - _CHANGE + _CHANGE * math.exp(min(surprise, 2 * _MOST))), _MOST)


def _by_class(chances: Tensor) -> Tensor:
    return chances.sum(dim=0).double().cpu()


def _log_evidence(counts: Tensor, before: Tensor) -> float:
    """Return the log-likelihood of counts after others: Dirichlet and multinomial."""
    prior = before + _UNKNOWN
    after = prior + counts
    ratio = after.lgamma() - prior.lgamma()
    return float(ratio.sum() + prior.sum().lgamma() - after.sum().lgamma())
