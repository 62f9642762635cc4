"""Response bodies that the service creates and the client reads."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from attakit.queries import AnswerKind, AnswerOutcome, QuestionState

AskedState = Literal["undecided", "yes", "no", "forgotten"]
Learning = Literal["running", "paused", "stopped"]
Labels = int | float  # a fraction if yes/no questions cost less than a label

# `class` is a Python keyword.
_Class = AliasChoices("class", "class_name")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


Flag = Annotated[bool, BeforeValidator(bool)]  # older rows do not have it
# JSON has neither infinity nor NaN.
Finite = Annotated[float | None, BeforeValidator(_finite)]


class ResponseBody(BaseModel):
    """A response, made from keywords, from records with the same attribute names, or from JSON.

    Unknown keys of a newer service are ignored.
    """

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Problem(ResponseBody):
    """What went wrong, and what to do."""

    error: str


class PredictionBody(ResponseBody):
    """The prediction for one input."""

    sample: str
    class_name: str = Field(
        validation_alias=_Class,
        serialization_alias="class",
        description="Name of the most likely class",
    )
    label: int = Field(description="Its number")
    probabilities: dict[str, float]
    entropy: float = Field(description="In nats; high if the model is unsure")
    version: int
    asked: Literal["undecided", "no"] = Field(
        description="Not decided yet; see /v1/samples/{sample} in a few seconds"
    )
    id: str | None = Field(None, description="The id that you sent with it")


class Predictions(ResponseBody):
    predictions: list[PredictionBody]


class SampleBody(ResponseBody):
    """A sample and its state."""

    sample: str
    at: float = Field(description="Seconds since 1970")
    class_name: str | None = Field(
        validation_alias=_Class, serialization_alias="class", description="null if forgotten"
    )
    confidence: float | None
    entropy: float | None
    version: int
    asked: AskedState
    id: str | None = Field(None, description="The sender's own id")
    text: str | None = None
    notes: dict[str, str] = {}


class ContentBody(ResponseBody):
    """The content of a sample that is not a picture, and the notes of its sender."""

    sample: str
    kind: Literal["image", "array", "text"]
    id: str | None = Field(None, description="The sender's own id")
    text: str | None = None
    notes: dict[str, str] = {}
    columns: list[str] = Field([], description="Names of the columns, from the settings")
    values: list[list[float]] | None = Field(None, description="The array as rows of its last axis")


class Classes(ResponseBody):
    classes: list[str]


class ClassGuide(ResponseBody):
    """A description of a class, for annotators."""

    class_name: str = Field(validation_alias=_Class, serialization_alias="class")
    about: str
    examples: list[str] = Field(description="Addresses of pictures")


class GuideBody(ResponseBody):
    """Labelling instructions."""

    instructions: str
    classes: list[ClassGuide] = Field(description="By number")


class GuessBody(ResponseBody):
    label: int
    class_name: str = Field(validation_alias=_Class, serialization_alias="class")
    probability: float


class LeaseBody(ResponseBody):
    """A question that is leased to you until a given time."""

    question: int
    sample: str
    image: str | None = Field(description="Address of the picture; null if there is none")
    content: ContentBody | None = Field(None, description="What to show instead of it, or with it")
    guesses: list[GuessBody] = Field(description="Likeliest first")
    until: float
    open: int = Field(description="Number of open questions")
    answered_by_you: int = Field(description="Number of all your answers")
    budget_left: Labels | None = Field(description="Labels left in the budget; null: no limit")
    proposed: int | None = Field(
        None, description="Number of the class that a yes/no question asks about; null: any class"
    )


class OutcomeBody(ResponseBody):
    outcome: AnswerOutcome


class DoneBody(ResponseBody):
    """Confirmation."""

    done: Literal[True] = True


class GivenAnswerBody(ResponseBody):
    who: str = Field(validation_alias=AliasChoices("who", "annotator"))
    kind: AnswerKind
    label: int | None
    at: float
    outcome: AnswerOutcome = Field(description="Only accepted answers can count")
    withdrawn: bool = Field(description="True if it was undone")
    comment: str | None = None
    flagged: Flag = Field(False, description="True if a colleague should look at it")
    counts: bool = Field(description="Accepted, not undone, and not overruled by other answers")


class OwnAnswerBody(ResponseBody):
    """One of your answers."""

    key: str = Field(description="Key of the answer, to undo it")
    question: int
    sample: str
    image: str | None
    text: str | None = Field(None, description="Beginning of the sample's text, or its id")
    proposed: int | None
    kind: AnswerKind
    label: int | None
    comment: str | None
    flagged: bool
    at: float
    final: bool = Field(description="True if it can no longer be undone")


class OwnAnswers(ResponseBody):
    answers: list[OwnAnswerBody]


class QuestionBody(ResponseBody):
    """A question in the log."""

    question: int
    sample: str
    image: str | None = Field(None, description="Address of the picture; null if there is none")
    id: str | None = Field(None, description="The id that the sender of the sample uses")
    text: str | None = Field(None, description="Beginning of the sample's text")
    at: float
    version: int
    score: float
    state: QuestionState
    proposed: int | None = Field(
        None, description="Number of the class that a yes/no question asks about"
    )
    label: int | None
    weight: float | None = Field(
        None, description='How far to trust the label, by `policy = "reliability"`'
    )
    settled: float | None
    guesses: list[GuessBody]
    answers: list[GivenAnswerBody]


class Questions(ResponseBody):
    questions: list[QuestionBody]


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
    budget: int | None = Field(description="Null: no limit")
    left: Labels | None = Field(description="A fraction if yes/no questions cost less")


class AccuracyBody(ResponseBody):
    """Accuracy estimated on uniformly drawn samples."""

    value: float
    low: float
    high: float
    count: int
    source: SourceAccuracy | None = Field(
        None, description="The source model's, on the same samples; null if not known for all"
    )


class AlarmBody(ResponseBody):
    at: float
    what: str
    text: str
    rose: bool = Field(default=True, description="False: it fell, which is only recorded")


class TrafficBody(ResponseBody):
    """Prediction requests to this server."""

    seconds: float = Field(description="Length of the period")
    requests: int
    failed: int = Field(description="Server errors, status 5xx")
    refused: int = Field(description="Invalid or rate-limited requests, status 4xx")
    median: float | None = Field(description="Median seconds to answer")
    slowest: float | None = Field(description="95th percentile of the seconds to answer")


class ClassAccuracy(ResponseBody):
    """Audit results of a class."""

    class_name: str = Field(validation_alias=_Class, serialization_alias="class")
    label: int
    count: int = Field(description="Audit samples of this class")
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

    version: int | None = Field(description="Promoted last")
    answering: int | None = Field(
        description="Version that is served. It differs from the promoted one for a moment after "
        "a promotion, or if that file cannot be used"
    )
    promoted_at: float | None
    learning: Learning
    throughput: float = Field(description="Images per second in the last minute")
    served: int = Field(description="Answered images: those stored before the start, and all since")
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


class HealthBody(ResponseBody):
    status: Literal["ok", "degraded"]
    problems: list[str] = Field(default=[], description="What cannot be stored now")


class ImportBody(ResponseBody):
    """Results of importing a file of answers."""

    taken: int = Field(description="Answers that count now")
    repeated: int = Field(description="Duplicates, which change nothing")
    late: int = Field(description="Answers to closed questions")
    conflicting: int = Field(description="Answers that differ from one that counts already")
    unknown: int = Field(description="Answers to unknown questions")
    refused: int = Field(description="Lines that cannot be parsed")
    blank: int = Field(description="Lines without an answer")
    problems: list[str] = Field(description="One message per unknown or refused line")
