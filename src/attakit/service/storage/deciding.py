"""Which of several answers counts, and when a question is closed, with them or without any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, or_, select

from attakit.queries import AnswerKind
from attakit.service.storage.rows import GivenAnswer, LabelRules, Question, read_row
from attakit.service.storage.tables import add_event, answers, leases, questions

Winner = tuple[str, int | None]  # kind and label

# By what was chosen.
_STATES = {"label": "answered", "no": "no", "skip": "skipped", "none": "none"}
_NO: Winner = ("no", None)
_undo = answers.alias("undo")


@dataclass(frozen=True, slots=True)
class Vote:
    """An accepted answer that was not withdrawn."""

    annotator: str
    kind: AnswerKind
    label: int | None
    at: float

    @property
    def choice(self) -> Winner:
        return self.kind, self.label


@dataclass(frozen=True, slots=True)
class Decision:
    """What the answers so far come to."""

    choice: Winner | None  # kind and label that count; None while it is open
    at: float | None  # when the answer came that decided
    wanted: int  # people still to be asked


def decide(rules: LabelRules, votes: Sequence[Vote], proposed: int | None = None) -> Decision:
    """Apply the policy to votes in the order in which they came.

    A majority is reached early by more than half of the people to be asked. Once all of them
    answered, the choice of most counts, and each tie asks one more person. If a class is proposed,
    people who name other classes agree that it is not the proposed one.

    Examples
    --------
    >>> said = [Vote("Ada", "label", 3, 0.0), Vote("Bob", "label", 5, 1.0)]
    >>> decide(LabelRules("first"), said).choice, decide(LabelRules("newest"), said).choice
    (('label', 3), ('label', 5))
    >>> decide(LabelRules("majority", answers=2), said)
    Decision(choice=None, at=None, wanted=1)
    >>> decide(LabelRules("majority", answers=2), said, proposed=4).choice
    ('no', None)
    """
    if rules.policy == "majority":
        return _find_majority(rules.answers, votes, proposed)
    if not votes:
        return Decision(None, None, 1)
    vote = votes[0] if rules.policy == "first" else votes[-1]
    return Decision(vote.choice, vote.at, 0)


def mark_counting(
    rules: LabelRules, question: Question, given: Sequence[GivenAnswer]
) -> tuple[GivenAnswer, ...]:
    """Tell which answers to a question count: its votes, and of these only those that agree with
    what was decided, if something was."""
    votes = {
        one.answer: Vote(one.annotator, one.kind, one.label, one.at)
        for one in given
        if one.outcome == "accepted" and not one.withdrawn
    }
    if question.state == "open":
        choice = decide(rules, tuple(votes.values()), question.proposed).choice
    else:
        kinds = {state: kind for kind, state in _STATES.items()}
        choice = (kinds.get(question.state, question.state), question.label)
    counting = {
        number
        for number, vote in votes.items()
        if choice in (None, vote.choice, _side(vote.choice, question.proposed))
    }
    return tuple(replace(one, counts=one.answer in counting) for one in given)


def _find_majority(people: int, votes: Sequence[Vote], proposed: int | None) -> Decision:
    counts: Counter[Winner] = Counter()
    for number, vote in enumerate(votes, start=1):
        counts[_side(vote.choice, proposed)] += 1
        (side, most), *others = counts.most_common(2)
        leads = not others or most > others[0][1]
        if leads and (2 * most > people or number >= people):
            return Decision(_winner(side, people, votes[:number], proposed), vote.at, 0)
    return Decision(None, None, max(people - len(votes), 1))


def _side(choice: Winner, proposed: int | None) -> Winner:
    """What a vote says about the proposed class; the vote itself if none is proposed."""
    if proposed is None or choice[0] == "skip" or choice == ("label", proposed):
        return choice
    return _NO


def _winner(side: Winner, people: int, votes: Sequence[Vote], proposed: int | None) -> Winner:
    """What counts: of those who say no, a class or "none of these" if more than half say that."""
    if side != _NO:
        return side
    denials = [vote.choice for vote in votes if _side(vote.choice, proposed) == _NO]
    choice, most = Counter(denials).most_common(1)[0]
    return choice if 2 * most > people else _NO


def is_withdrawn() -> ColumnElement[bool]:
    """Whether a later row withdraws an answer."""
    return exists().where(_undo.c.withdraws == answers.c.answer)


def is_vote() -> ColumnElement[bool]:
    """Whether a row of the answers counts."""
    return and_(answers.c.kind != "undo", answers.c.outcome == "accepted", ~is_withdrawn())


def votes_on(connection: Connection, question: int) -> tuple[Vote, ...]:
    """The votes on a question, in the order in which they came."""
    query = select(answers).where(answers.c.question == question, is_vote())
    rows = connection.execute(query.order_by(answers.c.answer))
    return tuple(read_row(Vote, row) for row in rows)


def is_due(rules: LabelRules, now: float) -> ColumnElement[bool]:
    """Whether a question can be closed: decided long enough ago, or expired and not leased."""
    shown = exists().where(leases.c.question == questions.c.question, leases.c.until > now)
    ripe = questions.c.decided <= now - rules.settle_seconds
    stale = questions.c.at <= now - rules.expiry_seconds
    return and_(
        questions.c.state == "open",
        or_(ripe, and_(questions.c.decided.is_(None), stale, ~shown)),
    )


def settle_due(connection: Connection, rules: LabelRules, now: float) -> int:
    """Close every question that is due, and return how many these are."""
    due = connection.execute(
        select(questions).where(is_due(rules, now)).order_by(questions.c.question)
    ).all()
    for row in due:
        _settle(connection, row, rules, now)
    return len(due)


def _settle(connection: Connection, row: Row[Any], rules: LabelRules, now: float) -> None:
    choice = decide(rules, votes_on(connection, row.question), row.proposed).choice
    state, label = ("expired", None) if choice is None else (_STATES[choice[0]], choice[1])
    this = questions.update().where(questions.c.question == row.question)
    connection.execute(this.values(state=state, label=label, settled=now, wanted=0))
    connection.execute(leases.delete().where(leases.c.question == row.question))
    add_event(connection, now, "settled", "service", question=row.question, state=state)
