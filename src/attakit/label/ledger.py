"""Ledger: the questions asked, the answers received, and their cost."""

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
FORGOTTEN = -1  # replaces a label that has been removed
FORGOTTEN_KIND = "forgotten"


class Ledger:
    """Keeps questions and budget consistent, even if answers are late, repeated or out of order.

    The first answer settles a question, and only that answer is passed on. A skipped or expired
    question is refunded and stays settled: a later answer counts as a repeat. Every other answer is
    paid for, whether it is a label, a "no" or anything else. If it cost less than the question, the
    rest is refunded. If no other code uses the budget, `cost` plus the prices of open questions
    equals `budget.spent`.

    Parameters
    ----------
    budget
        The budget that pays for the questions.

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
        self.repeated = 0  # answers to questions settled before
        self.conflicting = 0  # repeats that differ from the first answer

    @property
    def open(self) -> tuple[Query, ...]:
        """Questions without an answer, in the order they were asked."""
        return tuple(self._open)

    @property
    def asked(self) -> int:
        """Number of questions asked so far. Refunds are not subtracted."""
        return len(self._open) + len(self._settled)

    @property
    def received(self) -> int:
        """Number of answers of any kind. Skips do not count."""
        return sum(self._counts.values())

    @property
    def counts(self) -> dict[str, int]:
        """Received answers by kind: label, yes, no, excluded, among or soft."""
        return dict(self._counts)

    @property
    def cost(self) -> float:
        """Cost of the received answers, in labels."""
        return as_number(self._paid)

    @property
    def labelled(self) -> frozenset[SampleId]:
        """Samples that people said something about."""
        return frozenset(
            query.sample for query, answer in self._settled.items() if answer.says_something
        )

    @property
    def refunded(self) -> int:
        """Number of skipped or expired questions."""
        return len(self._settled) - self.received

    def knows(self, query: Query) -> bool:
        """True if a question was asked."""
        return query in self._open or query in self._settled

    def ask(self, queries: Sequence[Query]) -> None:
        """Pay for questions and record them: all of them or none."""
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
        """Record answers and return the first answer to each open question."""
        checked = [self._checked(answer) for answer in answers]
        return tuple(answer for answer in checked if self._is_first(answer))

    def expire(self) -> tuple[Answer, ...]:
        """Close every open question without a label, and refund it."""
        return self.settle([Answer.skipped(query, EXPIRED) for query in self._open])

    def forget(self, samples: Collection[SampleId]) -> None:
        """Remove what people said about these samples. The counts stay."""
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
        """Return what an answer costs: nothing for a skip, and never more than the price paid."""
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
                "%s was answered %s before and is now answered %s by %s. The first answer stays.",
                _describe(answer.query),
                _said(kept),
                _said(answer),
                answer.annotator,
            )


def _kind(answer: Answer) -> str:
    return FORGOTTEN_KIND if answer.label == FORGOTTEN else answer.kind


def _said(answer: Answer) -> object:
    """Return what an answer says, without weight and cost."""
    return pack_said(replace(answer, weight=1.0, cost=None))


def _describe(query: Query) -> str:
    return f"the question about sample {query.sample!r} (step {query.step})"
