"""Response bodies that the service creates and the client reads.

Those of the dashboard are in `dashboard_bodies`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from attakit.queries import AnswerKind, AnswerOutcome, QuestionState

AskedState = Literal["undecided", "yes", "no", "forgotten"]
Labels = int | float  # a fraction if yes/no questions cost less than a label

# `class` is a Python keyword.
CLASS = AliasChoices("class", "class_name")


Flag = Annotated[bool, BeforeValidator(bool)]  # older rows do not have it


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
        validation_alias=CLASS,
        serialization_alias="class",
        description="Name of the most likely class",
    )
    label: int = Field(description="Number of that class")
    probabilities: dict[str, float]
    entropy: float = Field(description="In nats; high if the model is unsure")
    version: int
    asked: Literal["undecided", "no"] = Field(
        description="Not decided yet; see /v1/samples/{sample} in a few seconds"
    )
    id: str | None = Field(None, description="The id that you sent with the input")


class Predictions(ResponseBody):
    predictions: list[PredictionBody]


class SampleBody(ResponseBody):
    """A sample and its state."""

    sample: str
    at: float = Field(description="Seconds since 1970")
    class_name: str | None = Field(
        validation_alias=CLASS, serialization_alias="class", description="null if forgotten"
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

    class_name: str = Field(validation_alias=CLASS, serialization_alias="class")
    about: str
    examples: list[str] = Field(description="Addresses of example pictures")


class GuideBody(ResponseBody):
    """Labelling instructions."""

    instructions: str
    classes: list[ClassGuide] = Field(description="By number")


class GuessBody(ResponseBody):
    label: int
    class_name: str = Field(validation_alias=CLASS, serialization_alias="class")
    probability: float


class LeaseBody(ResponseBody):
    """A question that is leased to you until a given time."""

    question: int
    sample: str
    image: str | None = Field(description="Address of the picture; null if there is none")
    content: ContentBody | None = Field(
        None, description="What to show instead of the picture, or with it"
    )
    guesses: list[GuessBody] = Field(description="Likeliest first")
    until: float
    open: int = Field(description="Number of questions that need an answer, this one included")
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
    text: str | None = Field(None, description="Beginning of its text or numbers, or its id")
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
    text: str | None = Field(None, description="Beginning of the sample's text or numbers")
    at: float
    version: int
    score: float
    state: QuestionState
    proposed: int | None = Field(
        None, description="Number of the class that a yes/no question asks about"
    )
    label: int | None
    weight: float | None = Field(
        None, description='Weight of the label, estimated with `policy = "reliability"`'
    )
    settled: float | None
    guesses: list[GuessBody]
    answers: list[GivenAnswerBody]


class Questions(ResponseBody):
    questions: list[QuestionBody]


class HealthBody(ResponseBody):
    status: Literal["ok", "degraded"]
    problems: list[str] = Field(default=[], description="What cannot be stored at the moment")


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
