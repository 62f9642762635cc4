"""Response bodies about the service: versions, status, charts, audit, people and events."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AliasChoices, BeforeValidator, Field

from attakit.client.bodies import CLASS, Labels, ResponseBody

Learning = Literal["running", "paused", "stopped"]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# JSON has neither infinity nor NaN.
Finite = Annotated[float | None, BeforeValidator(_finite)]


class LearningBody(ResponseBody):
    paused: bool


class GateBody(ResponseBody):
    passed: bool
    reason: str
    numbers: dict[str, Finite]
    at: float


class VersionBody(ResponseBody):
    """A saved model version and its state."""

    version: int = Field(validation_alias=AliasChoices("version", "number"))
    turn: int
    labels: int = Field(description="Labels received when it was created")
    at: float
    gate: GateBody | None = Field(
        description="Null before the gate has run, and for the source model"
    )
    kept: bool = Field(description="True if its weights are stored, so that it can be served")
    promoted: bool = Field(description="True if it was ever served")
    current: bool

    @property
    def passed(self) -> bool | None:
        """True if it passed its gate; None before the gate has run."""
        return None if self.gate is None else self.gate.passed

    @property
    def reason(self) -> str | None:
        """Why it passed or not, in one sentence; None before the gate has run."""
        return None if self.gate is None else self.gate.reason


class Versions(ResponseBody):
    versions: list[VersionBody]


class Share(ResponseBody):
    """A share, or a difference of shares, with its confidence bounds."""

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
    left: Labels | None = Field(description="May be a fraction if yes/no questions cost less")


class AccuracyBody(ResponseBody):
    """Accuracy estimated on uniformly drawn samples."""

    value: float
    low: float
    high: float
    count: int
    source: Share | None = Field(
        None, description="The source model's, on the same samples; null if not known for all"
    )


class AlarmBody(ResponseBody):
    at: float
    what: str
    text: str
    rose: bool = Field(
        default=True,
        description="False if the value fell, which is recorded but no reason to worry",
    )


class TrafficBody(ResponseBody):
    """Prediction requests to all servers."""

    seconds: float = Field(description="Length of the period")
    requests: int
    failed: int = Field(description="Server errors, status 5xx")
    refused: int = Field(description="Invalid or rate-limited requests, status 4xx")
    median: float | None = Field(description="Median seconds to answer")
    slowest: float | None = Field(description="95th percentile of the seconds to answer")


class TrafficPoint(TrafficBody):
    """The requests of one step of a chart."""

    at: float = Field(description="Start of the step")


class TrafficSeries(ResponseBody):
    points: list[TrafficPoint]


class AuditedClass(ResponseBody):
    """A class and its audit samples."""

    class_name: str = Field(validation_alias=CLASS, serialization_alias="class")
    label: int
    count: int = Field(description="Audit samples of this class")


class ClassAccuracy(AuditedClass):
    """Audit results of a class."""

    right: int = Field(description="Of these, predicted correctly when served")
    source_right: int = Field(description="Of these, predicted correctly by the source model")


class ConfusionCell(ResponseBody):
    label: int | None = Field(description="What people said; null: none of the classes")
    guess: int = Field(description="What was predicted")
    count: int


class AuditBody(ResponseBody):
    """The newest audit samples, by class."""

    count: int
    window: int = Field(description="Maximum number of audit samples considered")
    classes: list[ClassAccuracy]
    cells: list[ConfusionCell] = Field(description="The confusion matrix without its zero cells")
    source_known: bool = Field(description="True if `source_right` is known for all samples")


class ClassComparison(AuditedClass):
    """How often two versions are right about a class."""

    one: int = Field(description="Of these, predicted correctly by the first version")
    other: int = Field(description="Of these, predicted correctly by the second version")


class ComparisonBody(ResponseBody):
    """Two versions on the same audit samples."""

    count: int = Field(description="Audit samples whose content is still stored")
    one: Share = Field(description="Accuracy of the first version")
    other: Share = Field(description="Accuracy of the second version")
    difference: Share = Field(description="First version minus second")
    only_one: int = Field(description="Samples that only the first version gets right")
    only_other: int = Field(description="Samples that only the second version gets right")
    classes: list[ClassComparison] = Field(description="Classes with audit samples")


class PersonBody(ResponseBody):
    """Statistics of one person's newest answers."""

    who: str
    answers: int
    skipped: int
    flagged: int
    last: float = Field(description="Time of their last answer")
    compared: int = Field(description="Answers to questions that others answered too")
    agreed: int = Field(description="Of these, equal to another person's")
    audited: int = Field(description="Audit questions answered with a class")
    model_agreed: int = Field(description="Of these, equal to the model's first guess")


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
    """A person's reliability, estimated from questions that several people answered."""

    name: str
    accuracy: float = Field(description="Estimated share of correct answers")
    answers: int = Field(description="Answers that the estimate uses")


class StatusBody(ResponseBody):
    """The state of the service."""

    version: int | None = Field(description="Version that was promoted last")
    answering: int | None = Field(
        description="Version that is served. It differs from the promoted one for a moment after "
        "a promotion, or if that file cannot be used"
    )
    promoted_at: float | None
    learning: Learning
    throughput: float = Field(description="Inputs answered per second in the last minute")
    served: int = Field(description="Answered inputs: those stored before the start, and all since")
    waiting: int = Field(description="Samples that the learner has not seen")
    labels: LabelsBody
    accuracy: AccuracyBody | None
    agreement: float | None = Field(
        description="How often people agree with the source model when it is sure"
    )
    alarms: list[AlarmBody]
    turn: int
    traffic: TrafficBody | None = None
    annotators: list[AnnotatorBody] = Field(
        [], description="Most answers first; empty if one person answers each question"
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
