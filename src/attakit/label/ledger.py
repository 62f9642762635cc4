"""Ledger: what was asked, what came back, and what it cost."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from attakit.errors import LabelError, UnknownQuestion
from attakit.label.budget import Budget, as_number, exact
from attakit.label.checking import checked_answer
from attakit.label.packing import (
    check_state,
    pack_queries,
    pack_said,
    unpack_queries,
    unpack_said,
)
from attakit.queries import Answer, Query, SampleId

log = logging.getLogger(__name__)

EXPIRED = "expired"
FORGOTTEN = -1  # in the place of a label, where what was said has been removed
FORGOTTEN_KIND = "forgotten"


class Ledger:
    """Keeps questions and budget in step, however late, twice or out of order answers come.

    Each question is settled by its first answer, and only that answer is passed on. A question
    that was skipped or expired is refunded, and stays settled: an answer that comes later is a
    repeat. Every other answer is paid for, be it a label, a "no" or anything else. If it cost less
    than the question, the rest is refunded. With a budget
    of its own, `cost` and the prices of the open questions always add up to `budget.spent`.

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
        self._settled: dict[Query, Answer] = {}
        self._paid = Fraction(0)
        self._counts: Counter[str] = Counter()
        self.repeated = 0  # answers to questions that were settled before
        self.conflicting = 0  # those repeats that said something else than the first answer

    @property
    def open(self) -> tuple[Query, ...]:
        """Questions without an answer, in the order they were asked."""
        return tuple(self._open)

    @property
    def asked(self) -> int:
        """Questions put so far, refunds not subtracted."""
        return len(self._open) + len(self._settled)

    @property
    def received(self) -> int:
        """Answers that came, whatever they say; skips are none."""
        return sum(self._counts.values())

    @property
    def counts(self) -> dict[str, int]:
        """The received answers by kind: label, yes, no, excluded, among or soft."""
        return dict(self._counts)

    @property
    def cost(self) -> float:
        """What the received answers cost, in labels."""
        return as_number(self._paid)

    @property
    def labelled(self) -> frozenset[SampleId]:
        """Samples about which people said something."""
        return frozenset(
            query.sample for query, answer in self._settled.items() if answer.says_something
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
        self.budget.spend(sum(map(self.budget.price, queries), Fraction(0)))
        self._open.update(dict.fromkeys(queries))

    def settle(self, answers: Iterable[Answer]) -> tuple[Answer, ...]:
        """Record answers and return those that are the first to an open question."""
        checked = [self._checked(answer) for answer in answers]
        return tuple(answer for answer in checked if self._is_first(answer))

    def expire(self) -> tuple[Answer, ...]:
        """Close every open question without a label, and refund it."""
        return self.settle([Answer.skipped(query, EXPIRED) for query in self._open])

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove what people said about these samples. That they said something stays counted."""
        gone = set(samples)
        for query, answer in self._settled.items():
            if answer.says_something and query.sample in gone:
                self._settled[query] = Answer(query, FORGOTTEN, "", cost=answer.cost)
        self._count()

    def state_dict(self) -> dict[str, Any]:
        settled = self._settled.values()
        return {
            "budget": self.budget.state_dict(),
            "open": pack_queries(self._open),
            "settled": [[*answer.query.packed(), pack_said(answer)] for answer in settled],
            "repeated": self.repeated,
            "conflicting": self.conflicting,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Ledger", state, ("budget", "open", "settled", "repeated", "conflicting"))
        self.budget.load_state_dict(state["budget"])
        self._open = dict.fromkeys(unpack_queries(state["open"]))
        queries = unpack_queries(row[:-1] for row in state["settled"])
        said = [row[-1] for row in state["settled"]]
        answers = [unpack_said(*pair, "") for pair in zip(queries, said, strict=True)]
        self._settled = dict(zip(queries, answers, strict=True))
        self._count()
        self.repeated = state["repeated"]
        self.conflicting = state["conflicting"]

    def _count(self) -> None:
        """Count the settled questions again."""
        received = [answer for answer in self._settled.values() if answer.says_something]
        self._counts = Counter(map(_kind, received))
        self._paid = sum(map(self._cost, received), Fraction(0))

    def _checked(self, answer: Answer) -> Answer:
        if not self.knows(answer.query):
            raise UnknownQuestion(
                f"Ledger: {answer.annotator} answered {_describe(answer.query)}, which was never "
                f"asked. An oracle may only answer the questions it was given."
            )
        return checked_answer("Ledger", answer)

    def _is_first(self, answer: Answer) -> bool:
        if answer.query in self._settled:
            self._count_repeat(answer)
            return False
        del self._open[answer.query]
        self._settled[answer.query] = answer
        if answer.says_something:
            self._counts[_kind(answer)] += 1
        self._paid += self._cost(answer)
        self.budget.refund(self.budget.price(answer.query) - self._cost(answer))
        return True

    def _cost(self, answer: Answer) -> Fraction:
        """What is paid for an answer: nothing for a skip, and never more than was set aside."""
        price = self.budget.price(answer.query)
        if not answer.says_something:
            return Fraction(0)
        return price if answer.cost is None else min(price, exact(answer.cost))

    def _count_repeat(self, answer: Answer) -> None:
        self.repeated += 1
        kept = self._settled[answer.query]
        is_known = kept.says_something and kept.label != FORGOTTEN
        if is_known and answer.says_something and _said(kept) != _said(answer):
            self.conflicting += 1
            log.warning(
                "%s was answered %s before and is now answered %s by %s: the first answer stays.",
                _describe(answer.query),
                _said(kept),
                _said(answer),
                answer.annotator,
            )


def _kind(answer: Answer) -> str:
    return FORGOTTEN_KIND if answer.label == FORGOTTEN else answer.kind


def _said(answer: Answer) -> object:
    """What an answer says, whatever its weight and cost."""
    return pack_said(replace(answer, weight=1.0, cost=None))


def _describe(query: Query) -> str:
    return f"the question about sample {query.sample!r} (step {query.step})"
