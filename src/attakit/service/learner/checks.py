"""What is known when a candidate is judged, and the result of one check."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attakit.service.learner.honesty import Opinion


@dataclass(frozen=True, slots=True)
class SourceLike:
    """How often models agree with the source model's labels of stored samples."""

    candidate: float
    serving: float
    source: float  # can be slightly below 1, because a sample was answered in another batch


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about a candidate and about people. All sequences start with the oldest."""

    labels: Sequence[int | None]  # people's audit labels; None if no class fits
    candidate: Sequence[int]
    serving: Sequence[int]
    source: Sequence[int]
    said: Sequence[Opinion] = ()  # all answers, from the audit and the method
    pairs: Sequence[tuple[int | None, int | None]] = ()  # what two people say about a sample
    known: Sequence[bool] = ()  # whether an answer about a known example is right
    known_left: int = 0  # known examples without an answer
    source_like: SourceLike | None = None  # None if the method keeps no source-like samples
    classes: int = 2
    since: str = ""  # the event since which audit answers count, in words; empty if all count
    audit_share: float = 0.2  # share of future answers, to estimate how many are missing
    check_share: float = 0.25  # share of future answers about known examples

    def of_all(self, audit_answers: int) -> int:
        """Return how many answers are needed until this number of them belong to the audit."""
        return math.ceil(max(1, audit_answers) / self.audit_share) if self.audit_share else 1


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a candidate must prove."""

    passed: bool
    text: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    missing: int | None = None  # estimated number of answers; None if more do not help
    waiver: str = ""  # the setting that waives it
    hint: str = ""  # what else helps, as a sentence
