"""What requests and responses hold, as the OpenAPI description tells it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from attakit.service.storage.asking import MOST_LEASES
from attakit.service.storage.records import AnswerKind, Outcome, QuestionState

# What a client chooses itself is plain text that any database takes.
Key = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_.:-]{1,100}$",
        description="Chosen by the client, new for each answer: posting twice is harmless",
        examples=["7d1f2c"],
    ),
]
SampleName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Name of a sample")]
QuestionNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="Number of a question")]
VersionNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="Number of a version")]
Asked = Literal["undecided", "yes", "no", "forgotten"]
Learning = Literal["running", "paused", "stopped"]


class Body(BaseModel):
    """A request: unknown keys are errors, and so is `true` where a number is meant."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Problem(BaseModel):
    """What went wrong, and what to do."""

    error: str


class PredictionBody(BaseModel):
    """What the model says about one input."""

    sample: str
    class_: str = Field(serialization_alias="class", description="Name of the likeliest class")
    label: int = Field(description="Its number")
    probabilities: dict[str, float]
    entropy: float = Field(description="In nats; high when the model is not sure")
    version: int
    asked: Literal["undecided", "no"] = Field(
        description="Undecided: the learner looks at it within seconds; ask /v1/samples/{sample}"
    )


class Predictions(BaseModel):
    predictions: list[PredictionBody]


class SampleBody(BaseModel):
    """A sample and what became of it."""

    sample: str
    at: float = Field(description="Seconds since 1970")
    class_: str | None = Field(serialization_alias="class", description="null once forgotten")
    confidence: float | None
    entropy: float | None
    version: int
    asked: Asked


class Classes(BaseModel):
    classes: list[str]


class GuessBody(BaseModel):
    label: int
    class_: str = Field(serialization_alias="class")
    probability: float


class LeaseBody(BaseModel):
    """A question that is yours until a time."""

    question: int
    sample: str
    image: str = Field(description="Address of the picture")
    guesses: list[GuessBody] = Field(description="Likeliest first")
    until: float
    open: int = Field(description="Questions that wait for an answer")
    answered_by_you: int = Field(description="Answers in all")
    budget_left: int | None = Field(description="Labels that may be asked for; null: no limit")


class NewAnswer(Body):
    """Which class it is; or that you cannot say, or that it is none of them."""

    key: Key
    kind: AnswerKind = "label"
    label: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Number of a class")


class OutcomeBody(BaseModel):
    outcome: Outcome


class LeaseRequest(Body):
    """Which questions a page holds already."""

    besides: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        default=[],
        max_length=20,
        description=f"Questions you hold and keep: you get another one, {MOST_LEASES} in all",
    )


class UndoRequest(LeaseRequest):
    key: Key
    answer: Key | None = Field(
        None, description="Key of the answer that is meant; if not given, your newest"
    )


class Done(BaseModel):
    """It was done."""

    done: Literal[True] = True


class GivenAnswerBody(BaseModel):
    who: str
    kind: AnswerKind
    label: int | None
    at: float
    outcome: Outcome = Field(description="What became of it; only accepted answers can count")
    withdrawn: bool = Field(description="Whether it was taken back")
    counts: bool = Field(
        description="Accepted, not taken back, and not overruled by other people's answers"
    )


class QuestionBody(BaseModel):
    """A question as the log has it."""

    question: int
    sample: str
    at: float
    version: int
    score: float
    state: QuestionState
    label: int | None
    settled: float | None
    guesses: list[GuessBody]
    answers: list[GivenAnswerBody]


class Questions(BaseModel):
    questions: list[QuestionBody]


class LearningRequest(Body):
    paused: bool


class LearningBody(BaseModel):
    paused: bool


class GateBody(BaseModel):
    passed: bool
    reason: str
    numbers: dict[str, float | None]
    at: float


class VersionBody(BaseModel):
    """A model that was saved, and what became of it."""

    version: int
    turn: int
    labels: int = Field(description="Labels received when it was made")
    at: float
    gate: GateBody | None = Field(description="Null before it was tried, and for the source model")
    kept: bool = Field(description="Whether its weights are there, so that it can answer")
    promoted: bool = Field(description="Whether it ever answered requests")
    current: bool


class Versions(BaseModel):
    versions: list[VersionBody]


class LabelsBody(BaseModel):
    asked: int
    answered: int
    open: int
    expired: int
    skipped: int
    budget: int | None = Field(description="Null: no limit")
    left: int | None


class AccuracyBody(BaseModel):
    """Estimated on the samples that were drawn uniformly."""

    value: float
    low: float
    high: float
    count: int


class AlarmBody(BaseModel):
    at: float
    what: str
    text: str


class StatusBody(BaseModel):
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


class DriftBody(BaseModel):
    entropy: float | None
    mix: float | None
    distance: float | None


class TurnBody(BaseModel):
    turn: int
    at: float
    entropy: float | None
    drift: DriftBody
    labels: int | None
    accuracy: float | None


class Series(BaseModel):
    turns: list[TurnBody]
    alarms: list[AlarmBody]


class HealthBody(BaseModel):
    status: Literal["ok"]


class ImportBody(BaseModel):
    """What became of the answers of a file."""

    taken: int = Field(description="Answers that count now")
    repeated: int = Field(description="Said before, so nothing changed")
    late: int = Field(description="To questions that are closed")
    conflicting: int = Field(description="Something else was said before that counts")
    unknown: int = Field(description="To questions that were never asked")
    refused: int = Field(description="Lines that cannot be understood")
    blank: int = Field(description="Lines that are not filled in")
    problems: list[str] = Field(description="A sentence for each unknown or refused line")
