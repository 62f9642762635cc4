"""What a service says about itself: versions, status, charts, audit, people and events."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from attakit.client.bodies import CLASS, Labels, ResponseBody

Learning = Literal["running", "paused", "stopped"]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# JSON knows neither infinity nor NaN.
Finite = Annotated[float | None, BeforeValidator(_finite)]


class LearningBody(ResponseBody):
    paused: bool


class GateBody(ResponseBody):
    passed: bool
    reason: str
    numbers: dict[str, Finite]
    at: float


class VersionBody(ResponseBody):
    """A model that was saved, and what became of it."""

    version: int = Field(validation_alias=AliasChoices("version", "number"))
    turn: int
    labels: int = Field(description="Labels received when it was made")
    at: float
    gate: GateBody | None = Field(description="Null before it was tried, and for the source model")
    kept: bool = Field(description="Whether its weights are there, so that it can answer")
    promoted: bool = Field(description="Whether it ever answered requests")
    current: bool

    @property
    def passed(self) -> bool | None:
        """Whether it passed its gate; None before it was tried."""
        return None if self.gate is None else self.gate.passed

    @property
    def reason(self) -> str | None:
        """Why it passed or not, in one sentence; None before it was tried."""
        return None if self.gate is None else self.gate.reason


class Versions(ResponseBody):
    versions: list[VersionBody]


class SourceAccuracy(ResponseBody):
    value: float
    low: float
    high: float


class LabelsBody(ResponseBody):
    asked: int
    answered: int
    open: int
    expired: int
    skipped: int
    none: int = Field(0, description="Of those answered: people say that no class fits")
    budget: int | None = Field(description="Null: no limit")
    left: Labels | None = Field(description="A fraction where yes/no questions cost less")


class AccuracyBody(ResponseBody):
    """Estimated on the samples that were drawn uniformly."""

    value: float
    low: float
    high: float
    count: int
    source: SourceAccuracy | None = Field(
        None, description="The source model's, on the same samples; null: not known of all"
    )


class AlarmBody(ResponseBody):
    at: float
    what: str
    text: str
    rose: bool = Field(default=True, description="False: it fell, which is only noted")


class TrafficBody(ResponseBody):
    """Requests for predictions to this server."""

    seconds: float = Field(description="How far back it goes")
    requests: int
    failed: int = Field(description="Errors of the server, status 5xx")
    refused: int = Field(description="Requests that were wrong or too many, status 4xx")
    median: float | None = Field(description="Seconds to answer")
    slowest: float | None = Field(description="Seconds within which 95 % were answered")


class ClassAccuracy(ResponseBody):
    """What the audit says about a class."""

    class_name: str = Field(validation_alias=CLASS, serialization_alias="class")
    label: int
    count: int = Field(description="Audit samples of this class")
    right: int = Field(description="Of these, answered rightly when they were served")
    source_right: int = Field(description="Of these, that the source model has right")


class ConfusionCell(ResponseBody):
    label: int | None = Field(description="What people said; null: none of the classes")
    guess: int = Field(description="What was answered")
    count: int


class AuditBody(ResponseBody):
    """The newest audit samples, by class."""

    count: int
    window: int = Field(description="The most that are looked at")
    classes: list[ClassAccuracy]
    cells: list[ConfusionCell] = Field(description="The confusion matrix; cells of 0 are left out")
    source_known: bool = Field(description="Whether `source_right` is known of all samples")


class PersonBody(ResponseBody):
    """What one person answered, among the newest answers."""

    who: str
    answers: int
    skipped: int
    flagged: int
    last: float = Field(description="When they answered last")
    compared: int = Field(description="Answers to questions that others answered too")
    agreed: int = Field(description="Of these, the same as somebody else's")
    audited: int = Field(description="Classes named in the audit")
    model_agreed: int = Field(description="Of these, the model's own first guess")


class People(ResponseBody):
    people: list[PersonBody]


class EventBody(ResponseBody):
    at: float
    kind: str
    who: str
    text: str


class Events(ResponseBody):
    events: list[EventBody]


class AnnotatorBody(ResponseBody):
    """How reliable a person is, estimated from answers of several people to the same questions."""

    name: str
    accuracy: float = Field(description="How often this person is estimated to be right")
    answers: int = Field(description="Answers that the estimate is made from")


class StatusBody(ResponseBody):
    """How the service is doing."""

    version: int | None = Field(description="Promoted last")
    answering: int | None = Field(
        description="Version whose answers are given; another one for a moment after a promotion, "
        "or where the file of the promoted one cannot be used"
    )
    promoted_at: float | None
    learning: Learning
    throughput: float = Field(description="Images per second over the last minute")
    served: int = Field(description="Images answered: kept ones before the start, all since")
    waiting: int = Field(description="Samples the learner has not looked at")
    labels: LabelsBody
    accuracy: AccuracyBody | None
    agreement: float | None = Field(
        description="How often people agree with the source model where it is sure"
    )
    alarms: list[AlarmBody]
    turn: int
    traffic: TrafficBody | None = None
    annotators: list[AnnotatorBody] = Field(
        [], description="Most answers first; empty where one person answers each question"
    )


class DriftBody(ResponseBody):
    entropy: float | None
    mix: float | None
    distance: float | None


class TurnBody(ResponseBody):
    turn: int
    at: float
    entropy: float | None
    drift: DriftBody
    labels: int | None
    accuracy: float | None
    source_accuracy: float | None = None


class SeriesBody(ResponseBody):
    turns: list[TurnBody]
    alarms: list[AlarmBody]
