"""What a service answers: it makes its responses from these bodies, and the client reads them."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from attakit.queries import AnswerKind, AnswerOutcome, QuestionState

AskedState = Literal["undecided", "yes", "no", "forgotten"]
Learning = Literal["running", "paused", "stopped"]
Labels = int | float  # a whole number unless yes/no questions cost a fraction of a label

# `class` is a keyword of Python.
_Class = AliasChoices("class", "class_name")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


Flag = Annotated[bool, BeforeValidator(bool)]  # rows of older versions have none
# JSON knows neither infinity nor NaN.
Finite = Annotated[float | None, BeforeValidator(_finite)]


class ResponseBody(BaseModel):
    """A response, made from keywords, from records with attributes of the same names, or JSON.

    Keys that a newer service adds are left out.
    """

    model_config = ConfigDict(from_attributes=True, frozen=True)


class Problem(ResponseBody):
    """What went wrong, and what to do."""

    error: str


class PredictionBody(ResponseBody):
    """What the model says about one input."""

    sample: str
    class_name: str = Field(
        validation_alias=_Class,
        serialization_alias="class",
        description="Name of the likeliest class",
    )
    label: int = Field(description="Its number")
    probabilities: dict[str, float]
    entropy: float = Field(description="In nats; high when the model is not sure")
    version: int
    asked: Literal["undecided", "no"] = Field(
        description="Undecided: the learner looks at it within seconds; ask /v1/samples/{sample}"
    )
    id: str | None = Field(None, description="The one that you sent with it")


class Predictions(ResponseBody):
    predictions: list[PredictionBody]


class SampleBody(ResponseBody):
    """A sample and what became of it."""

    sample: str
    at: float = Field(description="Seconds since 1970")
    class_name: str | None = Field(
        validation_alias=_Class, serialization_alias="class", description="null once forgotten"
    )
    confidence: float | None
    entropy: float | None
    version: int
    asked: AskedState
    id: str | None = Field(None, description="The one that its sender uses")
    text: str | None = None
    notes: dict[str, str] = {}


class ContentBody(ResponseBody):
    """What people see of a sample, if it is no picture, and what its sender said about it."""

    sample: str
    kind: Literal["image", "array", "text"]
    id: str | None = Field(None, description="The one that its sender uses")
    text: str | None = None
    notes: dict[str, str] = {}
    columns: list[str] = Field([], description="Names of the numbers, from the settings")
    values: list[list[float]] | None = Field(None, description="Of an array: rows of its last axis")


class Classes(ResponseBody):
    classes: list[str]


class ClassGuide(ResponseBody):
    """What people should know about a class."""

    class_name: str = Field(validation_alias=_Class, serialization_alias="class")
    about: str
    examples: list[str] = Field(description="Addresses of pictures")


class GuideBody(ResponseBody):
    """How to label."""

    instructions: str
    classes: list[ClassGuide] = Field(description="By number")


class GuessBody(ResponseBody):
    label: int
    class_name: str = Field(validation_alias=_Class, serialization_alias="class")
    probability: float


class LeaseBody(ResponseBody):
    """A question that is yours until a time."""

    question: int
    sample: str
    image: str | None = Field(description="Address of the picture; null: it is none")
    content: ContentBody | None = Field(None, description="What to show in its place, or beside it")
    guesses: list[GuessBody] = Field(description="Likeliest first")
    until: float
    open: int = Field(description="Questions that wait for an answer")
    answered_by_you: int = Field(description="Answers in all")
    budget_left: Labels | None = Field(description="Labels that may be asked for; null: no limit")
    proposed: int | None = Field(
        None, description="Number of the class that a yes/no question asks about; null: any class"
    )


class OutcomeBody(ResponseBody):
    outcome: AnswerOutcome


class DoneBody(ResponseBody):
    """It was done."""

    done: Literal[True] = True


class GivenAnswerBody(ResponseBody):
    who: str = Field(validation_alias=AliasChoices("who", "annotator"))
    kind: AnswerKind
    label: int | None
    at: float
    outcome: AnswerOutcome = Field(description="What became of it; only accepted answers can count")
    withdrawn: bool = Field(description="Whether it was taken back")
    comment: str | None = None
    flagged: Flag = Field(False, description="Whether somebody should look at it")
    counts: bool = Field(
        description="Accepted, not taken back, and not overruled by other people's answers"
    )


class OwnAnswerBody(ResponseBody):
    """An answer of yours."""

    key: str = Field(description="Of the answer, to take it back")
    question: int
    sample: str
    image: str | None
    text: str | None = Field(None, description="How the text of the sample begins, or its id")
    proposed: int | None
    kind: AnswerKind
    label: int | None
    comment: str | None
    flagged: bool
    at: float
    final: bool = Field(description="Whether it can no longer be taken back")


class OwnAnswers(ResponseBody):
    answers: list[OwnAnswerBody]


class QuestionBody(ResponseBody):
    """A question as the log has it."""

    question: int
    sample: str
    image: str | None = Field(None, description="Address of the picture; null: it is none")
    id: str | None = Field(None, description="The one that the sender of the sample uses")
    text: str | None = Field(None, description="How the text of the sample begins")
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

    class_name: str = Field(validation_alias=_Class, serialization_alias="class")
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


class HealthBody(ResponseBody):
    status: Literal["ok", "degraded"]
    problems: list[str] = Field(default=[], description="What cannot be stored at present")


class ImportBody(ResponseBody):
    """What became of the answers of a file."""

    taken: int = Field(description="Answers that count now")
    repeated: int = Field(description="Said before, so nothing changed")
    late: int = Field(description="To questions that are closed")
    conflicting: int = Field(description="Something else was said before that counts")
    unknown: int = Field(description="To questions that were never asked")
    refused: int = Field(description="Lines that cannot be understood")
    blank: int = Field(description="Lines that are not filled in")
    problems: list[str] = Field(description="A sentence for each unknown or refused line")
