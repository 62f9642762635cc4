"""Contents of requests: bodies, and parts of addresses."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from attakit.queries import AnswerKind
from attakit.service.storage.asking import MOST_LEASES
from attakit.service.storage.tables import is_text

# Text that the client chooses must be plain text that any database accepts.
Key = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_.:-]{1,100}$",
        description="Chosen by the client, new for each answer. Posting twice is harmless",
        examples=["7d1f2c"],
    ),
]
SampleName = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="Name of a sample")]
QuestionNumber = Annotated[int, Path(ge=1, le=2**31 - 1, description="Number of a question")]
VersionNumber = Annotated[int, Path(ge=0, le=2**31 - 1, description="Number of a version")]


def _storable(text: str) -> str:
    if not is_text(text):
        raise ValueError("a comment must have no zero character and no unpaired surrogates")
    return text


class RequestBody(BaseModel):
    """A request. Unknown keys are errors, and so is `true` instead of a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


class NewAnswer(RequestBody):
    """A class; yes or no, if one is proposed; "skip"; or "none" of the classes."""

    key: Key
    kind: AnswerKind = "label"
    label: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Number of a class")
    comment: Annotated[str, AfterValidator(_storable)] | None = Field(
        None, max_length=1000, description="A comment for your team"
    )
    flag: bool = Field(False, description="A colleague should look at it")


class LeaseRequest(RequestBody):
    """Questions that a page already holds."""

    besides: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(
        default=[],
        max_length=20,
        description=f"Questions you hold and keep. You get one more, up to {MOST_LEASES}",
    )


class UndoRequest(LeaseRequest):
    key: Key
    answer: Key | None = Field(
        None, description="Key of the answer to undo; by default your newest"
    )


class LearningRequest(RequestBody):
    paused: bool
