"""Ledger: what was asked, what came back, and what it cost."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from attakit.errors import LabelError, UnknownQuestion
from attakit.label.budget import Budget
from attakit.label.classes import class_index
from attakit.label.packing import check_state, pack_queries, unpack_queries
from attakit.queries import Answer, Query, SampleId

log = logging.getLogger(__name__)

EXPIRED = "expired"
FORGOTTEN = -1  # stands for a label that was removed


class Ledger:
    """Keeps questions and budget in step, however late, twice or out of order answers come.

    Each question is settled by its first answer, and only that answer is passed on. A question
    settled without a label is refunded, and stays settled: a label that comes later is a repeat.
    With a budget of its own, `received + len(open) == budget.spent` always holds.

    Parameters
    ----------
    budget
        Pays for the questions.

    Examples
    --------
    >>> ledger = Ledger(Budget(2))
    >>> first, second = (Query(name, step=0) for name in ("a", "b"))
    >>> ledger.ask([first, second])
    >>> fresh = ledger.settle([Answer(second, None, "Ada"), Answer(first, 3, "Ada")])
    >>> [answer.label for answer in fresh]
    [None, 3]
    >>> ledger.settle([Answer(first, 3, "Ada")])
    ()
    >>> ledger.received, ledger.refunded, ledger.repeated, ledger.budget.remaining
    (1, 1, 1, 1)
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._open: dict[Query, None] = {}  # a dictionary, because it keeps the order of asking
        self._settled: dict[Query, int | None] = {}
        self.received = 0  # labels that came
        self.repeated = 0  # answers to questions that were settled before
        self.conflicting = 0  # those repeats whose label was another than the one first given

    @property
    def open(self) -> tuple[Query, ...]:
        """Questions without an answer, in the order they were asked."""
        return tuple(self._open)

    @property
    def asked(self) -> int:
        """Questions put so far, refunds not subtracted."""
        return len(self._open) + len(self._settled)

    @property
    def labelled(self) -> frozenset[SampleId]:
        """Samples for which a label came."""
        return frozenset(
            query.sample for query, label in self._settled.items() if label is not None
        )

    @property
    def refunded(self) -> int:
        """Questions that were skipped or expired."""
        return len(self._settled) - self.received

    def knows(self, query: Query) -> bool:
        """Whether a question was put."""
        return query in self._open or query in self._settled

    def ask(self, queries: Sequence[Query]) -> None:
        """Spend and record questions, all of them or none."""
        new: set[Query] = set()
        for query in queries:
            if self.knows(query) or query in new:
                raise LabelError(
                    f"Ledger: {_describe(query)} was asked before. Ask each question once."
                )
            new.add(query)
        self.budget.spend(len(queries))
        self._open.update(dict.fromkeys(queries))

    def settle(self, answers: Iterable[Answer]) -> tuple[Answer, ...]:
        """Record answers and return those that are the first to an open question."""
        checked = [self._checked(answer) for answer in answers]
        return tuple(answer for answer in checked if self._is_first(answer))

    def expire(self) -> tuple[Answer, ...]:
        """Close every open question without a label, and refund it."""
        return self.settle([Answer(query, None, EXPIRED) for query in self._open])

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove what people said about these samples. That they said something stays counted."""
        gone = set(samples)
        self._settled = {
            query: FORGOTTEN if label is not None and query.sample in gone else label
            for query, label in self._settled.items()
        }

    def state_dict(self) -> dict[str, Any]:
        labels = self._settled.values()
        packed = pack_queries(self._settled)
        return {
            "budget": self.budget.state_dict(),
            "open": pack_queries(self._open),
            "settled": [[*query, label] for query, label in zip(packed, labels, strict=True)],
            "repeated": self.repeated,
            "conflicting": self.conflicting,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Ledger", state, ("budget", "open", "settled", "repeated", "conflicting"))
        self.budget.load_state_dict(state["budget"])
        self._open = dict.fromkeys(unpack_queries(state["open"]))
        queries = unpack_queries(row[:-1] for row in state["settled"])
        labels = [row[-1] for row in state["settled"]]
        self._settled = dict(zip(queries, labels, strict=True))
        self.received = sum(label is not None for label in labels)
        self.repeated = state["repeated"]
        self.conflicting = state["conflicting"]

    def _checked(self, answer: Answer) -> Answer:
        if not self.knows(answer.query):
            raise UnknownQuestion(
                f"Ledger: {answer.annotator} answered {_describe(answer.query)}, which was never "
                f"asked. An oracle may only answer the questions it was given."
            )
        label = class_index("Ledger", answer.query.sample, answer.label)
        return Answer(answer.query, label, answer.annotator)

    def _is_first(self, answer: Answer) -> bool:
        if answer.query in self._settled:
            self._count_repeat(answer)
            return False
        del self._open[answer.query]
        self._settled[answer.query] = answer.label
        if answer.label is None:
            self.budget.refund(1)
        else:
            self.received += 1
        return True

    def _count_repeat(self, answer: Answer) -> None:
        self.repeated += 1
        kept = self._settled[answer.query]
        if {None, FORGOTTEN}.isdisjoint((kept, answer.label)) and kept != answer.label:
            self.conflicting += 1
            log.warning(
                "%s was answered %s before and is now answered %s by %s: the first answer stays.",
                _describe(answer.query),
                kept,
                answer.label,
                answer.annotator,
            )


def _describe(query: Query) -> str:
    return f"the question about sample {query.sample!r} (step {query.step})"
