"""What a service tells, as the client hands it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says about one input."""

    sample: str
    class_name: str
    label: int
    probabilities: Mapping[str, float]
    entropy: float
    version: int
    asked: str


@dataclass(frozen=True, slots=True)
class Sample:
    """What became of a sample; `asked` is "undecided", "yes", "no" or "forgotten".

    Of a forgotten sample class, confidence and entropy are None.
    """

    sample: str
    at: float
    class_name: str | None
    confidence: float | None
    entropy: float | None
    version: int
    asked: str


@dataclass(frozen=True, slots=True)
class Guess:
    """A class that a question may be about."""

    label: int
    class_name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Lease:
    """A question that is yours until a time."""

    question: int
    sample: str
    guesses: tuple[Guess, ...]
    until: float
    open: int
    answered_by_you: int
    budget_left: int | None


@dataclass(frozen=True, slots=True)
class Labels:
    """What became of the questions; None: no limit."""

    asked: int
    answered: int
    open: int
    expired: int
    skipped: int
    budget: int | None
    left: int | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Estimated on samples that were drawn uniformly."""

    value: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Alarm:
    at: float
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Status:
    """How the service is doing; `version` is promoted, `answering` gives the answers."""

    version: int | None
    answering: int | None
    learning: str
    throughput: float
    served: int
    waiting: int
    labels: Labels
    accuracy: Accuracy | None
    agreement: float | None
    alarms: tuple[Alarm, ...]
    turn: int


@dataclass(frozen=True, slots=True)
class Version:
    """A model that was saved; `passed` and `reason` are None before it was tried.

    One whose weights are not `kept` cannot be promoted.
    """

    version: int
    turn: int
    labels: int
    at: float
    promoted: bool
    current: bool
    passed: bool | None
    reason: str | None
    kept: bool = True
