"""QuestionStore: who is asked what, their answers, and which ones count."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Select, and_, func, select

from attakit.queries import AnswerKind, AnswerOutcome
from attakit.service.storage.annotators import Person, find_people, votes_with_questions
from attakit.service.storage.answering import (
    PostedAnswer,
    check_label,
    find_question,
    take_answer,
    withdraw,
)
from attakit.service.storage.asking import drop_lease, lease_question, put_question
from attakit.service.storage.database import Database
from attakit.service.storage.deciding import is_vote, is_withdrawn, mark_counting
from attakit.service.storage.retention import (
    PAID_STATES,
    asks_class,
    is_answered,
    is_audited,
)
from attakit.service.storage.rows import (
    AskedCounts,
    GivenAnswer,
    LabelRules,
    Lease,
    OwnAnswer,
    Question,
    QuestionCounts,
    read_row,
)
from attakit.service.storage.settling import is_due, settle_due
from attakit.service.storage.tables import answers, questions

_NEEDS_ANSWERS = and_(questions.c.state == "open", questions.c.decided.is_(None))


class QuestionStore:
    """Questions from the time they are asked until their outcome is used."""

    def __init__(self, database: Database, rules: LabelRules) -> None:
        self._database = database
        self._rules = rules

    def put(self, new: Sequence[Question]) -> tuple[int, ...]:
        """Store new questions and return their numbers. Existing ones stay unchanged."""
        if not new:
            return ()
        now, places = self._database.clock(), self._rules.places
        with self._database.write() as connection:
            return tuple(put_question(connection, one, places, now) for one in new)

    def lease(self, annotator: str, besides: Sequence[int] = ()) -> Lease | None:
        """Lease a person the oldest question with a free place, or renew the lease they hold.

        They keep the questions in `besides` and get another one, so that a page can fetch ahead.
        None if there is no other, or if they hold the maximum per person.
        """
        now = self._database.clock()
        with self._database.write() as connection:
            return lease_question(connection, annotator, self._rules, now, besides)

    def release(self, question: int, annotator: str) -> None:
        """End this person's lease on a question; raises `UnknownQuestion` if it does not exist."""
        with self._database.write() as connection:
            find_question(connection, question)
            drop_lease(connection, question, annotator)

    def answer(
        self,
        question: int,
        annotator: str,
        kind: AnswerKind,
        label: int | None,
        key: str,
        *,
        comment: str | None = None,
        flagged: bool = False,
    ) -> AnswerOutcome:
        """Record what a person says. They need no lease, because it may have expired.

        The sender chooses the `key`: the same answer with the same key counts once. Comment and
        flag are for people and change nothing.

        Returns
        -------
        str
            "accepted"; "repeated" if it is a duplicate; "conflict" if it differs from an answer
            that counts, or reuses the key of another answer; "late" if the question is closed. Only
            an accepted answer counts.
        """
        check_label(kind, label, self._rules.classes)
        posted = PostedAnswer(
            question, annotator, kind, label, key, comment or None, flagged or None
        )
        with self._database.write() as connection:
            return take_answer(connection, posted, self._rules, self._database.clock())

    def undo(
        self, annotator: str, key: str, besides: Sequence[int] = (), *, answer: str | None = None
    ) -> Lease | None:
        """Withdraw a person's unsettled answer, and lease them the question again.

        It is the newest answer, or the one with the key `answer`; None if there is none. They keep
        the questions in `besides`, up to the maximum per person.
        """
        now = self._database.clock()
        with self._database.write() as connection:
            return withdraw(connection, annotator, key, self._rules, now, besides, answer)

    def settle(self) -> int:
        """Close the questions that are decided or expired, and return their number."""
        now = self._database.clock()
        due = select(questions.c.question).where(is_due(self._rules, now)).limit(1)
        if self._database.scalar(due) is None:  # called often, and mostly nothing is due
            return 0
        with self._database.write() as connection:
            return settle_due(connection, self._rules, now)

    def next_settling(self) -> float | None:
        """Return when the earliest decided answer may be settled; None if there is none."""
        query = select(func.min(questions.c.decided)).where(questions.c.state == "open")
        decided = self._database.scalar(query)
        return None if decided is None else float(decided) + self._rules.settle_seconds

    def settled(self) -> tuple[Question, ...]:
        """Return closed questions whose outcome no turn has used yet, in the order of closing."""
        closed = questions.c.settled.is_not(None) & questions.c.taken.is_(None)
        return self._find(
            select(questions).where(closed).order_by(questions.c.settled, questions.c.question)
        )

    def get(self, ids: Sequence[int]) -> tuple[Question, ...]:
        """Return questions by number, in the given order; raises `UnknownQuestion`."""
        with self._database.read() as connection:
            return tuple(read_row(Question, find_question(connection, one)) for one in ids)

    def of_turn(self, turn: int) -> tuple[Question, ...]:
        """Return the questions that a turn of the learner asked, in the order of asking."""
        this = select(questions).where(questions.c.turn == turn)
        return self._find(this.order_by(questions.c.question))

    def counts(self) -> QuestionCounts:
        """Count the questions by state."""
        query = select(
            questions.c.state,
            func.count(),
            func.count(questions.c.refunded),
            func.count(questions.c.proposed),
        ).group_by(questions.c.state)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        states: dict[str, int] = {row[0]: row[1] for row in rows}
        return QuestionCounts(
            asked=sum(states.values()),
            **states,
            refunded=sum(row[2] for row in rows if row[0] == "none"),
            yes_no=sum(row[3] for row in rows if row[0] in PAID_STATES),
        )

    def asked_since(self, time: float) -> AskedCounts:
        """Count the questions asked since a time, in any state."""
        query = select(func.count(), func.count(questions.c.proposed))
        with self._database.read() as connection:
            row = connection.execute(query.where(questions.c.at >= time)).one()
        return AskedCounts(classes=row[0] - row[1], yes_no=row[1])

    def answered_by(self, annotator: str) -> int:
        """Count the answers of a person that count."""
        query = select(func.count()).where(answers.c.annotator == annotator, is_vote())
        return int(self._database.scalar(query))

    def given_by(self, annotator: str, limit: int) -> tuple[OwnAnswer, ...]:
        """Return a person's newest answers that were not undone, newest first."""
        query = (
            select(answers, questions.c.sample, questions.c.state, questions.c.proposed)
            .join(questions, questions.c.question == answers.c.question)
            .where(answers.c.annotator == annotator, is_vote(), questions.c.state != "forgotten")
            .order_by(answers.c.answer.desc())
        )
        return self._database.find(OwnAnswer, query.limit(limit))

    def recent(self, limit: int) -> tuple[Question, ...]:
        """The newest questions, newest first."""
        return self._find(select(questions).order_by(questions.c.question.desc()).limit(limit))

    def people(self, limit: int) -> tuple[Person, ...]:
        """Return who gave the newest votes, and how often they agree with others."""
        with self._database.read() as connection:
            return find_people(connection.execute(votes_with_questions(limit)))

    def unanswered(self) -> tuple[Question, ...]:
        """Return open questions that need more answers, oldest first."""
        wanted = select(questions).where(_NEEDS_ANSWERS)
        return self._find(wanted.order_by(questions.c.question))

    def count_unanswered(self) -> int:
        """Count the open questions that need more answers."""
        return int(self._database.scalar(select(func.count()).where(_NEEDS_ANSWERS)))

    def answers(self, question: int) -> tuple[GivenAnswer, ...]:
        """Return all answers to a question in order of arrival."""
        query = (
            select(answers, is_withdrawn().label("withdrawn"))
            .where(answers.c.question == question, answers.c.kind != "undo")
            .order_by(answers.c.answer)
        )
        with self._database.read() as connection:
            asked = read_row(Question, find_question(connection, question))
            given = [read_row(GivenAnswer, row) for row in connection.execute(query)]
        return mark_counting(self._rules, asked, given)

    def audited(self, window: int) -> tuple[Question, ...]:
        """Return the newest answered audit questions, newest first."""
        newest = (questions.c.settled.desc(), questions.c.question.desc())
        return self._find(select(questions).where(is_audited()).order_by(*newest).limit(window))

    def compared(self, window: int) -> tuple[Question, ...]:
        """Return the newest answered questions with the source model's guess, oldest first.

        Unlike `audited`, it includes questions that the method chose. It excludes yes/no questions:
        only a "yes" names a class, and always one that a model predicted. It also excludes
        questions that check people.
        """
        known = and_(is_answered(), asks_class(), questions.c.source_guess.is_not(None))
        known = and_(known, questions.c.purpose != "check")
        newest = (questions.c.settled.desc(), questions.c.question.desc())
        return self._find(select(questions).where(known).order_by(*newest).limit(window))[::-1]

    def second_opinions(self, window: int) -> tuple[tuple[int | None, int | None], ...]:
        """Return what the first two people said about a sample, oldest question first.

        These are the newest questions with two or more answers; None is "none of these".
        """
        if self._rules.places < 2:
            return ()
        newest = select(questions.c.question).where(is_answered(), asks_class())
        newest = newest.order_by(questions.c.question.desc()).limit(window)
        query = (
            select(answers.c.question, answers.c.label)
            .where(answers.c.question.in_(newest), is_vote(), answers.c.kind != "skip")
            .order_by(answers.c.question, answers.c.answer)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        said = [[row.label for row in group] for _, group in groupby(rows, lambda row: row[0])]
        return tuple((one[0], one[1]) for one in said if len(one) > 1)

    def _find(self, query: Select[Any]) -> tuple[Question, ...]:
        return self._database.find(Question, query)
