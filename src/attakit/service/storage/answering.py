"""How answers are recorded: late, repeated, contradictory or withdrawn ones too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from sqlalchemy import Connection, Row, select

from attakit.errors import LabelError, UnknownQuestion
from attakit.queries import AnswerKind, AnswerOutcome
from attakit.service.storage.asking import drop_lease, drop_surplus_leases, find_lease, give_lease
from attakit.service.storage.deciding import (
    Decision,
    Vote,
    Winner,
    decide,
    is_vote,
    votes_on,
)
from attakit.service.storage.rows import LabelRules, Lease, Question, field_values, read_row
from attakit.service.storage.tables import add_event, answers, is_number, questions, samples

_MOST_CLASSES = 2**31


@dataclass(frozen=True, slots=True)
class PostedAnswer:
    """An answer as it comes in."""

    question: int
    annotator: str
    kind: AnswerKind
    label: int | None
    key: str
    comment: str | None = None
    flagged: bool | None = None


def check_label(kind: str, label: object, classes: int | None) -> None:
    """Raise `LabelError` unless kind and label fit together.

    Every answer passes this check, whether it comes from a page, a client or a file. The ledger
    checks again that a label is a class before the learner uses it.
    """
    if kind not in get_args(AnswerKind):
        kinds = ", ".join(get_args(AnswerKind))
        raise LabelError(f"An answer's kind must be one of {kinds}, got {kind!r:.40}.")
    if kind != "label":
        if label is not None:
            raise LabelError(
                f"An answer of kind {kind!r} has no label, got {label!r:.40}. Leave the label out."
            )
        return
    most = _MOST_CLASSES if classes is None else classes
    is_whole = isinstance(label, int) and not isinstance(label, bool)
    if not is_whole or label not in range(most):
        raise LabelError(
            f"An answer of kind 'label' needs a label from 0 to {most - 1}, got {label!r}."
        )


def take_answer(
    connection: Connection, posted: PostedAnswer, rules: LabelRules, now: float
) -> AnswerOutcome:
    """Record an answer and return its outcome."""
    question = find_question(connection, posted.question)
    posted = _as_stored(posted, question.proposed)
    known = connection.execute(select(answers).where(answers.c.key == posted.key)).one_or_none()
    if known is not None:
        return _repeat(known, posted, question.state)
    if _is_forgotten(connection, question):
        # Neither the answer nor its key is stored: either may reveal something about the sample.
        details = {"question": posted.question, "outcome": "late"}
        add_event(connection, now, "answer", posted.annotator, **details)
        return "late"
    outcome = _judge(connection, question, posted, rules)
    row = answers.insert().values(**field_values(posted), outcome=outcome, at=now)
    inserted = connection.execute(row).inserted_primary_key
    assert inserted is not None
    details = {"question": posted.question, "answer": inserted[0], "outcome": outcome}
    add_event(connection, now, "answer", posted.annotator, **details)
    drop_lease(connection, posted.question, posted.annotator)
    if outcome == "accepted":
        decision = _count_votes(connection, question, rules)
        drop_surplus_leases(connection, posted.question, decision.wanted, now)
    return outcome


def _as_stored(posted: PostedAnswer, proposed: int | None) -> PostedAnswer:
    """Store a "yes" as the label of the proposed class; "yes" and "no" fit no other question."""
    if posted.kind not in ("yes", "no"):
        return posted
    if proposed is None:
        raise LabelError(
            f"Question {posted.question} asks for the class and proposes none, so {posted.kind!r} "
            "is not an answer. Answer with a label."
        )
    return replace(posted, kind="label", label=proposed) if posted.kind == "yes" else posted


def _is_forgotten(connection: Connection, question: Row[Any]) -> bool:
    about = select(samples.c.forgotten).where(samples.c.sample == question.sample)
    return connection.scalar(about) is not None


def withdraw(
    connection: Connection,
    annotator: str,
    key: str,
    rules: LabelRules,
    now: float,
    besides: Sequence[int] = (),
    answer: str | None = None,
) -> Lease | None:
    """Withdraw an annotator's unsettled answer, and lease them the question again.

    It is the newest answer, or the one with the key `answer`. The lease is granted even if other
    answers still decide the question: a person who withdraws an answer will give another one.
    """
    known = connection.execute(select(answers).where(answers.c.key == key)).one_or_none()
    if known is not None:  # the same request, sent twice
        is_same = known.kind == "undo" and known.annotator == annotator
        question = read_row(Question, find_question(connection, known.question))
        return find_lease(connection, question, annotator, now) if is_same else None
    newest = _newest_open_vote(connection, annotator, answer)
    if newest is None:
        return None
    connection.execute(
        answers.insert().values(
            question=newest.question,
            key=key,
            annotator=annotator,
            kind="undo",
            outcome="accepted",
            withdraws=newest.answer,
            at=now,
        )
    )
    details = {"question": newest.question, "answer": newest.answer}
    add_event(connection, now, "undo", annotator, **details)
    decision = _count_votes(connection, find_question(connection, newest.question), rules)
    # Later leases of the question make room for the person who had it before.
    drop_surplus_leases(connection, newest.question, max(decision.wanted - 1, 0), now)
    until = give_lease(connection, newest.question, annotator, rules, now, besides)
    question = read_row(Question, find_question(connection, newest.question))
    return Lease(question, annotator, until)


def find_question(connection: Connection, question: int) -> Row[Any]:
    """Return the row of a question, or raise `UnknownQuestion`."""
    this = select(questions).where(questions.c.question == question)
    row = connection.execute(this).one_or_none() if is_number(question) else None
    if row is None:
        raise UnknownQuestion(
            f"Questions: question {question} was never asked. Answer one that was given to you."
        )
    return row


def _repeat(known: Row[Any], posted: PostedAnswer, state: str) -> AnswerOutcome:
    """Give a repeated answer the same outcome; refuse another answer with the same key."""
    given = (posted.question, posted.annotator, posted.kind)
    same_label = known.label == posted.label or state == "forgotten"
    if (known.question, known.annotator, known.kind) != given or not same_label:
        return "conflict"
    outcome: AnswerOutcome = known.outcome
    return "repeated" if outcome == "accepted" else outcome


def _judge(
    connection: Connection, question: Row[Any], posted: PostedAnswer, rules: LabelRules
) -> AnswerOutcome:
    if question.state != "open":
        return "late"
    votes = votes_on(connection, posted.question)
    choice = (posted.kind, posted.label)
    if rules.policy == "newest":
        newest = [(vote.annotator, vote.choice) for vote in votes[-1:]]
        return "repeated" if newest == [(posted.annotator, choice)] else "accepted"
    own = [vote.choice for vote in votes if vote.annotator == posted.annotator]
    if own:
        return "repeated" if own[-1] == choice else "conflict"
    return _judge_other(choice, votes, rules, question.proposed)


def _judge_other(
    choice: Winner, votes: Sequence[Vote], rules: LabelRules, proposed: int | None
) -> AnswerOutcome:
    """Judge another person's answer to a question that may be decided already."""
    decided = decide(rules, votes, proposed).choice
    if decided is None:
        return "accepted"
    return "repeated" if decided == choice else "conflict"


def _newest_open_vote(connection: Connection, annotator: str, key: str | None) -> Row[Any] | None:
    query = (
        select(answers)
        .join(questions, questions.c.question == answers.c.question)
        .where(answers.c.annotator == annotator, questions.c.state == "open", is_vote())
        .order_by(answers.c.answer.desc())
    )
    if key is not None:
        query = query.where(answers.c.key == key)
    return connection.execute(query.limit(1)).one_or_none()


def _count_votes(connection: Connection, question: Row[Any], rules: LabelRules) -> Decision:
    """Store how many people the question still needs, and when it was decided."""
    votes = votes_on(connection, question.question)
    decision = decide(rules, votes, question.proposed)
    this = questions.update().where(questions.c.question == question.question)
    connection.execute(this.values(wanted=decision.wanted, decided=decision.at))
    return decision
