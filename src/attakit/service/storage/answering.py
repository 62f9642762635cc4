"""How answers come in: late, twice, contradictory or taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from attakit.errors import LabelError, UnknownQuestion
from attakit.service.storage.asking import drop_surplus_leases, give_lease
from attakit.service.storage.deciding import Decision, Vote, decide
from attakit.service.storage.events import add_event
from attakit.service.storage.records import AnswerKind, LabelRules, Outcome, Question, read_row
from attakit.service.storage.sql_values import is_number, is_text
from attakit.service.storage.tables import answers, leases, questions, samples
from attakit.service.storage.votes import is_vote, votes_on

_LONGEST_KEY = 200
_MOST_CLASSES = 2**31


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as it is posted."""

    question: int
    annotator: str
    kind: AnswerKind
    label: int | None
    key: str


def check_said(said: Said, classes: int | None) -> None:
    """Raise `LabelError` unless kind and label go together."""
    check_key(said.key)
    who = f"Questions: the answer of {said.annotator!r} to question {said.question}"
    if said.kind not in ("label", "skip", "none"):
        raise LabelError(f"{who} must be of kind label, skip or none, got {said.kind!r}.")
    if said.kind != "label":
        if said.label is not None:
            raise LabelError(f"{who} is of kind {said.kind} and must have no label.")
        return
    most = _MOST_CLASSES if classes is None else classes
    is_whole = isinstance(said.label, int) and not isinstance(said.label, bool)
    if not is_whole or said.label not in range(most):
        raise LabelError(
            f"{who} must have a class from 0 to {most - 1} as its label, got {said.label!r}."
        )


def check_key(key: str) -> None:
    """Raise `LabelError` unless a key can be kept."""
    if not 0 < len(key) <= _LONGEST_KEY or not is_text(key):
        raise LabelError(
            f"Questions: a key must have 1 to {_LONGEST_KEY} ordinary characters, such as those "
            f"of a random identifier."
        )


def take_answer(connection: Connection, said: Said, rules: LabelRules, now: float) -> Outcome:
    """Record an answer and say what became of it."""
    question = find_question(connection, said.question)
    known = connection.execute(select(answers).where(answers.c.key == said.key)).one_or_none()
    if known is not None:
        return _repeat(known, said, question.state)
    if _is_forgotten(connection, question):
        # Neither what was said nor its key is kept: either may tell something of the sample.
        add_event(connection, now, "answer", said.annotator, question=said.question, outcome="late")
        return "late"
    outcome = _judge(connection, question, said, rules)
    number = connection.execute(
        answers.insert().values(
            question=said.question,
            key=said.key,
            annotator=said.annotator,
            kind=said.kind,
            label=said.label,
            outcome=outcome,
            at=now,
        )
    ).inserted_primary_key
    assert number is not None
    told = {"question": said.question, "answer": number[0], "outcome": outcome}
    add_event(connection, now, "answer", said.annotator, **told)
    drop_lease(connection, said.question, said.annotator)
    if outcome == "accepted":
        decision = _count_votes(connection, said.question, rules)
        drop_surplus_leases(connection, said.question, decision.wanted, now)
    return outcome


def _is_forgotten(connection: Connection, question: Row[Any]) -> bool:
    about = select(samples.c.forgotten).where(samples.c.sample == question.sample)
    return connection.scalar(about) is not None


def take_back(
    connection: Connection,
    annotator: str,
    key: str,
    rules: LabelRules,
    now: float,
    besides: Sequence[int] = (),
    answer: str | None = None,
) -> Question | None:
    """Withdraw an annotator's answer that is not settled, and show the question again.

    It is the newest, or the one with the key `answer`.
    """
    known = connection.execute(select(answers).where(answers.c.key == key)).one_or_none()
    if known is not None:  # the same click, come twice
        is_same = known.kind == "undo" and known.annotator == annotator
        return read_row(Question, find_question(connection, known.question)) if is_same else None
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
    told = {"question": newest.question, "answer": newest.answer}
    add_event(connection, now, "undo", annotator, **told)
    decision = _count_votes(connection, newest.question, rules)
    # Whoever was shown the question since makes room for the one who had it before.
    drop_surplus_leases(connection, newest.question, max(decision.wanted - 1, 0), now)
    if decision.wanted:
        give_lease(connection, newest.question, annotator, rules, now, besides)
    return read_row(Question, find_question(connection, newest.question))


def drop_lease(connection: Connection, question: int, annotator: str) -> None:
    """Show a question to this annotator no longer."""
    held = (leases.c.question == question, leases.c.annotator == annotator)
    connection.execute(leases.delete().where(*held))


def find_question(connection: Connection, question: int) -> Row[Any]:
    """The row of a question; raises `UnknownQuestion` if it was never asked."""
    this = select(questions).where(questions.c.question == question)
    row = connection.execute(this).one_or_none() if is_number(question) else None
    if row is None:
        raise UnknownQuestion(
            f"Questions: question {question} was never asked. Answer one that was given to you."
        )
    return row


def _repeat(known: Row[Any], said: Said, state: str) -> Outcome:
    """The same answer come twice is told the same; another one under its key is refused."""
    given = (said.question, said.annotator, said.kind)
    same_label = known.label == said.label or state == "forgotten"
    if (known.question, known.annotator, known.kind) != given or not same_label:
        return "conflict"
    outcome: Outcome = known.outcome
    return "repeated" if outcome == "accepted" else outcome


def _judge(connection: Connection, question: Row[Any], said: Said, rules: LabelRules) -> Outcome:
    if question.state != "open":
        return "late"
    votes = votes_on(connection, said.question)
    choice = (said.kind, said.label)
    if rules.policy == "newest":
        newest = [(vote.annotator, vote.choice) for vote in votes[-1:]]
        return "repeated" if newest == [(said.annotator, choice)] else "accepted"
    own = [vote.choice for vote in votes if vote.annotator == said.annotator]
    if own:
        return "repeated" if own[-1] == choice else "conflict"
    return _judge_other(choice, votes, rules)


def _judge_other(
    choice: tuple[str, int | None], votes: Sequence[Vote], rules: LabelRules
) -> Outcome:
    """What another person's answer is to a question that may be decided already."""
    decided = decide(rules, votes).choice
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


def _count_votes(connection: Connection, question: int, rules: LabelRules) -> Decision:
    """Keep with a question how many people are still wanted, and when it was decided."""
    decision = decide(rules, votes_on(connection, question))
    this = questions.update().where(questions.c.question == question)
    connection.execute(this.values(wanted=decision.wanted, decided=decision.at))
    return decision
