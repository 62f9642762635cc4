"""What passes between a method and the people who answer. No torch here: labelling stays light."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NewType, Protocol

SampleId = NewType("SampleId", str)


@dataclass(frozen=True, slots=True)
class Query:
    """One question: which class is this sample?

    Parameters
    ----------
    sample
        Name of the sample.
    step
        Step of the run at which it was asked.
    copy
        Above zero only when the same sample is asked twice in one step, which nothing but the
        settings that imitate the public SimATTA code ever does.
    """

    sample: SampleId
    step: int
    copy: int = 0


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
