"""What a service answers: it makes its responses from these bodies, and the client reads them.

Those of the dashboard are in `dashboard_bodies`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from attakit.queries import AnswerKind, AnswerOutcome, QuestionState

AskedState = Literal["undecided", "yes", "no", "forgotten"]
Labels = int | float  # a whole number unless yes/no questions cost a fraction of a label

# `class` is a keyword of Python.
CLASS = AliasChoices("class", "class_name")


Flag = Annotated[bool, BeforeValidator(bool)]  # rows of older versions have none


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
        validation_alias=CLASS,
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
        validation_alias=CLASS, serialization_alias="class", description="null once forgotten"
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

    class_name: str = Field(validation_alias=CLASS, serialization_alias="class")
    about: str
    examples: list[str] = Field(description="Addresses of pictures")


class GuideBody(ResponseBody):
    """How to label."""

    instructions: str
    classes: list[ClassGuide] = Field(description="By number")


class GuessBody(ResponseBody):
    label: int
    class_name: str = Field(validation_alias=CLASS, serialization_alias="class")
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
