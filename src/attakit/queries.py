"""What passes between a method and the people who answer. No torch here: labelling stays light."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NewType, Protocol

SampleId = NewType("SampleId", str)

AnswerKind = Literal["label", "skip", "none"]  # a class, no idea, none of the classes
AnswerOutcome = Literal["accepted", "repeated", "late", "conflict"]  # only the first counts
QuestionState = Literal["open", "answered", "skipped", "none", "expired", "forgotten"]


@dataclass(frozen=True, slots=True)
class Query:
    """One question: which class is this sample?

    Parameters
    ----------
    sample
        Name of the sample.
    step
        Step of the run at which it was asked.
    """

    sample: SampleId
    step: int

    def packed(self) -> list[Any]:
        """The question as a list of a string and a number, for saved states."""
        return [str(self.sample), int(self.step)]

    @staticmethod
    def unpacked(packed: Sequence[Any]) -> Query:
        """A question from a saved state.

        States of earlier versions have a third value, which numbered repeated questions. It is
        ignored.

        >>> Query.unpacked(["cat.png", 3, 0])
        Query(sample='cat.png', step=3)
        """
        sample, step, *_ = packed
        return Query(SampleId(sample), step)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for a query.

    Parameters
    ----------
    query
        The question that is answered.
    label
        Class index, or None for a question that was skipped or expired: the budget is refunded.
    annotator
        Who answered.
    """

    query: Query
    label: int | None
    annotator: str


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many questions a step may ask, about which classes, and at which pace.

    A method that asks works out from its rate of labels how many are due
    (`AskingMethod.due`). `attakit.select.allowed.select_allowed` applies the rest to the choice of
    any selector.

    Parameters
    ----------
    count
        Most questions of the step: what is left of the budget.
    per_class
        Questions left for each predicted class. A class that is not named has none left. None
        sets no limit per class.
    pace
        How many times faster than usual to ask, for example after a drift alarm.
    samples_left
        Samples that are still to come, this batch included. None if unknown.
    due
        Questions that are due now. None if all that are allowed may be asked.
    repeat
        Samples that were asked about when the same step ran before, in a replay. They are asked
        about again even if the selector would now choose others. None if the step is new.

    Examples
    --------
    >>> Allowance(3).count
    3
    """

    count: int
    per_class: Mapping[int, int] | None = None
    pace: float = 1.0
    samples_left: int | None = None
    due: int | None = None
    repeat: Collection[SampleId] | None = None

    @property
    def limit(self) -> int:
        """Most questions of the step: those that are due, within those that are allowed."""
        return self.count if self.due is None else min(self.count, self.due)


class Stateful(Protocol):
    """Something that can be saved and continued. States hold tensors, numbers, strings, lists."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Oracle(Stateful, Protocol):
    """Answers questions, at once or later."""

    def ask(self, queries: Sequence[Query]) -> None:
        """Put questions. Returns at once."""

    def collect(self) -> Sequence[Answer]:
        """Hand over the answers that are ready. Never waits."""

    @property
    def pending(self) -> int:
        """How many questions have no answer handed over yet."""
