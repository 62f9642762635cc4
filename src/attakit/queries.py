"""Questions and answers that a method and people exchange. No torch here: labelling stays light."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NewType, Protocol

from attakit.errors import LabelError

SampleId = NewType("SampleId", str)

# A class; no idea; none of the classes; yes or no to the proposed class.
AnswerKind = Literal["label", "skip", "none", "yes", "no"]
AnswerOutcome = Literal["accepted", "repeated", "late", "conflict"]  # only the first counts
QuestionKind = Literal["class", "yes_no"]  # "which class is it?" or "is it this class?"
SaidKind = Literal["label", "yes", "no", "excluded", "among", "soft", "skipped"]
QuestionState = Literal["open", "answered", "no", "skipped", "none", "expired", "forgotten"]


@dataclass(frozen=True, slots=True)
class Query:
    """One question: which class is this sample, or is it of the class that is proposed?

    Parameters
    ----------
    sample
        Name of the sample.
    step
        Step of the run at which it was asked.
    proposed
        Class index that a yes/no question proposes. None asks which class it is.

    Examples
    --------
    >>> Query("cat.png", 3).kind, Query("cat.png", 3, proposed=1).kind
    ('class', 'yes_no')
    """

    sample: SampleId
    step: int
    proposed: int | None = None

    @property
    def kind(self) -> QuestionKind:
        """The kind of question: about the class, or yes/no."""
        return "class" if self.proposed is None else "yes_no"

    def packed(self) -> list[Any]:
        """Return a list for saved states: sample, step, and the proposed class if any."""
        proposal = [] if self.proposed is None else [{"proposed": int(self.proposed)}]
        return [str(self.sample), int(self.step), *proposal]

    @staticmethod
    def unpacked(packed: Sequence[Any]) -> Query:
        """Read a question from a saved state.

        States of earlier versions may have a number as third value, which numbered repeated
        questions. It is ignored.

        Examples
        --------
        >>> Query.unpacked(["cat.png", 3, 0])
        Query(sample='cat.png', step=3, proposed=None)
        """
        sample, step, *rest = packed
        proposed = rest[0]["proposed"] if rest and isinstance(rest[0], Mapping) else None
        return Query(SampleId(sample), step, proposed)


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a query: a class, excluded classes, candidates, or chances.

    An answer with none of these means that the question was skipped or expired, and the budget is
    refunded. All other answers are paid for.

    Parameters
    ----------
    query
        The question that is answered.
    label
        Class index, or None.
    annotator
        Who answered.
    excluded
        Classes that it is not: a "no", or "none of these".
    among
        Classes of which it is one: "a cat or a dog".
    chances
        One number per class, 0 or more: how likely each class is. They need not add up to 1.
    weight
        How far to trust the answer. 1 is a normal answer; 0 says nothing.
    cost
        The cost in labels, if it is less than the price of the question. None for the full price.

    Examples
    --------
    >>> query = Query("cat.png", 3, proposed=1)
    >>> Answer.yes(query, "Ada").label, Answer.no(query, "Ada").excluded
    (1, (1,))
    >>> Answer(Query("cat.png", 3), None, "Ada", among=(0, 2)).kind
    'among'
    """

    query: Query
    label: int | None
    annotator: str
    excluded: tuple[int, ...] = ()
    among: tuple[int, ...] = ()
    chances: tuple[float, ...] | None = None
    weight: float = 1.0
    cost: float | None = None

    @staticmethod
    def yes(query: Query, annotator: str) -> Answer:
        """The proposed class is right. This counts as a label."""
        return Answer(query, _proposed(query), annotator)

    @staticmethod
    def no(query: Query, annotator: str) -> Answer:
        """The proposed class is wrong."""
        return Answer(query, None, annotator, excluded=(_proposed(query),))

    @staticmethod
    def skipped(query: Query, annotator: str) -> Answer:
        """The question was skipped, and the budget is refunded."""
        return Answer(query, None, annotator)

    @staticmethod
    def knowing(query: Query, label: int, annotator: str) -> Answer:
        """The answer of someone who knows the class: the class, or yes or no if that is asked.

        Examples
        --------
        >>> Answer.knowing(Query("cat.png", 3, proposed=1), 0, "truth").kind
        'no'
        """
        if query.proposed is None or query.proposed == label:
            return Answer(query, label, annotator)
        return Answer.no(query, annotator)

    @property
    def kind(self) -> SaidKind:
        """The kind of answer."""
        proposed = self.query.proposed
        if self.label is not None:
            return "label" if self.label != proposed else "yes"
        if self.excluded:
            return "excluded" if self.excluded != (proposed,) else "no"
        if self.among:
            return "among"
        return "skipped" if self.chances is None else "soft"

    @property
    def says_something(self) -> bool:
        """True if the question was answered, not skipped or expired."""
        return self.kind != "skipped"

    def teaches(self, classes: int) -> bool:
        """True if a classifier can learn from it: not if it is a skip or excludes all classes."""
        return self.says_something and self.weight > 0 and not self.is_outside(classes)

    def is_outside(self, classes: int) -> bool:
        """True if it says that the sample belongs to none of the classes."""
        return len(set(self.excluded)) == classes

    @property
    def is_plain(self) -> bool:
        """True for a class that counts as usual, or a skip: all that most code needs."""
        return self.weight == 1 and not self.excluded and not self.among and self.chances is None


def _proposed(query: Query) -> int:
    if query.proposed is None:
        raise LabelError(
            f"Answer: the question about sample {query.sample!r} proposes no class, so there is no "
            f"yes or no. Answer with a label, or ask Query(sample, step, proposed=…)."
        )
    return query.proposed


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many questions a step may ask, about which classes, and how fast.

    A method that asks computes from its label rate how many are due (`AskingMethod.due`).
    `attakit.select.allowed.select_allowed` applies the rest to the choice of any selector.

    Parameters
    ----------
    count
        Maximum number of questions of the step: the rest of the budget.
    per_class
        Questions left for each predicted class. A class that is not listed has none left. None sets
        no limit per class.
    pace
        How many times faster than usual to ask, for example after a drift alarm.
    samples_left
        Samples still to come, including this batch. None if unknown.
    due
        Questions that are due now. None allows all that the other limits permit.
    repeat
        In a replay, samples that this step asked about before. They are asked about again even if
        the selector would now choose others. A mapping also names the proposed class of each, None
        for a question about the class. None if the step is new.
    yes_no
        Maximum number of yes/no questions, if the step asks no others. None if they cost as much
        as others.

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
    repeat: Collection[SampleId] | Mapping[SampleId, int | None] | None = None
    yes_no: int | None = None

    @property
    def limit(self) -> int:
        """Maximum number of questions of the step: the due ones, within the allowed ones."""
        return self.count if self.due is None else min(self.count, self.due)

    def of(self, kind: QuestionKind) -> Allowance:
        """Return the allowance of a step that asks questions of one kind only, with their `count`.

        Examples
        --------
        >>> Allowance(3, yes_no=12).of("yes_no").count
        12
        """
        if kind == "class" or self.yes_no is None:
            return self
        return replace(self, count=self.yes_no, yes_no=None)


class Stateful(Protocol):
    """Something that can be saved and continued. States hold tensors, numbers, strings, lists."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Oracle(Stateful, Protocol):
    """Answers questions, at once or later."""

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask questions. Returns at once."""

    def collect(self) -> Sequence[Answer]:
        """Hand over the answers that are ready. Never waits."""

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been handed over."""
