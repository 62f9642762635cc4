"""The rows of the database as frozen records, without torch and without database types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from attakit.errors import check_choice, check_count, check_range
from attakit.queries import AnswerKind, AnswerOutcome, QuestionState

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from sqlalchemy import Row

Record = TypeVar("Record", bound="DataclassInstance")

Purpose = Literal["learn", "audit", "check"]
KNOWN = -1  # the "turn" of known examples: no turn ever learns from them
Role = Literal["predict", "label", "admin"]
Policy = Literal["first", "majority", "reliability", "newest"]
SEVERAL: tuple[Policy, ...] = ("majority", "reliability")  # policies that ask several people
SampleState = Literal["undecided", "asked", "not asked", "forgotten"]


def read_row(record: type[Record], row: Row[Any], prefix: str = "") -> Record:
    """Make a record from a row: each field from the column of that name, if it exists.

    If a query joins tables that share names, the columns have a `prefix`.
    """
    found = row._mapping
    names = [one.name for one in fields(record) if prefix + one.name in found]
    return record(**{name: found[prefix + name] for name in names})


def field_values(record: DataclassInstance, *without: str) -> dict[str, Any]:
    """Return the fields of a record by name, for a row or a response, without some."""
    names = [one.name for one in fields(record) if one.name not in without]
    return {name: getattr(record, name) for name in names}


@dataclass(frozen=True, slots=True)
class ServedSample:
    """A sample from a request, with its prediction."""

    sample: str
    content: bytes | None  # the original image file or text, or an .npy array; None if removed
    version: int  # model version that answered
    guess: int  # class index
    confidence: float
    entropy: float
    at: float  # seconds since 1970
    number: int = 0  # in order of arrival, from 1; set by the database
    caller_id: str | None = None  # the sender's own id
    text: str | None = None  # for people: the input itself, or the sender's description
    notes: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Which class is this sample, or is it of the proposed class?"""

    question: int
    sample: str
    turn: int
    purpose: str  # see `Purpose`; migration 0002 added others for repeated questions
    version: int  # version that the asking model was made from
    score: float  # entropy of the asking model
    guesses: tuple[tuple[int, float], ...]  # class index and probability, most likely first
    at: float
    state: QuestionState = "open"
    label: int | None = None  # the label that counts, when settled
    settled: float | None = None
    source_guess: int | None = None  # the source model's; None if unknown
    source_entropy: float | None = None
    proposed: int | None = None  # class of a yes/no question; None asks for the class
    refunded: bool | None = None  # a "none of these" from the time when it was refunded
    weight: float | None = None  # how far to trust the label; None is a normal answer
    chances: tuple[float, ...] | None = None  # by class, if several people were weighted


@dataclass(frozen=True, slots=True)
class Lease:
    """A question that is leased to one annotator until a given time."""

    question: Question
    annotator: str
    until: float


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """What one person said, as stored in the log."""

    answer: int
    question: int
    annotator: str
    kind: AnswerKind
    label: int | None
    at: float
    withdrawn: bool = False
    outcome: AnswerOutcome = "accepted"  # only accepted answers count
    counts: bool = True  # accepted, not withdrawn, and not overruled by other answers
    comment: str | None = None
    flagged: bool | None = None  # a colleague should look at it


@dataclass(frozen=True, slots=True)
class OwnAnswer:
    """An answer, as shown to the person who gave it."""

    key: str
    question: int
    sample: str
    kind: AnswerKind
    label: int | None
    proposed: int | None
    state: QuestionState
    at: float
    comment: str | None = None
    flagged: bool | None = None


@dataclass(frozen=True, slots=True)
class QuestionCounts:
    """How many questions were asked, by state."""

    asked: int = 0
    open: int = 0
    answered: int = 0
    no: int = 0  # the proposed class is wrong
    skipped: int = 0
    none: int = 0
    expired: int = 0
    forgotten: int = 0
    refunded: int = 0  # refunded ones among `none`
    yes_no: int = 0  # yes/no questions among the paid ones

    @property
    def paid(self) -> int:
        """Questions that cost something: open and answered ones."""
        said = self.answered + self.no + self.none - self.refunded
        return self.open + said + self.forgotten


@dataclass(frozen=True, slots=True)
class AskedCounts:
    """Numbers of questions by what they ask."""

    classes: int = 0
    yes_no: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """Everything that a turn of the learner depends on, written before the turn starts."""

    number: int
    samples: tuple[str, ...]
    allowance: int
    audit: tuple[str, ...] = ()  # samples to ask about, whatever the method chooses
    settled: tuple[int, ...] = ()  # questions whose outcome this turn learns from
    forgotten: tuple[str, ...] = ()  # samples to remove from the learner's memory first
    checks: tuple[str, ...] | None = ()  # samples whose answers check people; None if old
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class TurnNumbers:
    """Results of a turn, for the dashboard."""

    number: int
    at: float
    numbers: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Version:
    """A saved model version and its state."""

    number: int  # 0 is the source model
    turn: int
    file: str  # name within the folder of versions
    weights: str  # hash of the weights
    labels: int  # received when it was created
    at: float
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """What a candidate had to prove, and whether it did."""

    passed: bool
    reason: str  # one sentence for people
    numbers: Mapping[str, float] = field(default_factory=dict)
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Promotion:
    """A version that is or was served, and since when."""

    number: int
    version: int
    reason: str
    who: str
    at: float


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the event log."""

    number: int
    at: float
    kind: str  # "question", "answer", "alarm", "promotion", "forgotten", …
    who: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Token:
    """A person's role. The token itself is not stored."""

    name: str
    role: Role
    created: float
    revoked: float | None = None


@dataclass(frozen=True, slots=True)
class LabelRules:
    """The rules for when an answer counts, and the timeouts."""

    policy: Policy = "first"  # which of several answers counts
    answers: int = 1  # people who answer each question, for majority and reliability
    lease_seconds: float = 60.0  # for this time a question is leased to one person only
    settle_seconds: float = 5.0  # for this time the deciding answer can be undone
    expiry_seconds: float = 86_400.0  # an undecided question is closed after this time
    classes: int | None = None  # number of classes, to refuse other labels; None if unknown

    def __post_init__(self) -> None:
        check_choice("LabelRules", "policy", self.policy, get_args(Policy))
        check_count("LabelRules", "answers", self.answers)
        for name in ("lease_seconds", "settle_seconds", "expiry_seconds"):
            check_range("LabelRules", name, getattr(self, name), at_least=0)

    @property
    def places(self) -> int:
        """People to ask about each question, if they agree."""
        return self.answers if self.policy in SEVERAL else 1
