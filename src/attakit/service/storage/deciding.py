"""Decide which of several answers to a question counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Connection, and_, exists, select

from attakit.queries import AnswerKind
from attakit.service.storage.rows import GivenAnswer, LabelRules, Question, read_row
from attakit.service.storage.tables import answers

Winner = tuple[str, int | None]  # kind and label

# The key is what was chosen.
STATES = {"label": "answered", "no": "no", "skip": "skipped", "none": "none"}
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
    """What the answers so far add up to."""

    choice: Winner | None  # kind and label that count; None while open
    at: float | None  # when the deciding answer arrived
    wanted: int  # number of people still to ask


def decide(rules: LabelRules, votes: Sequence[Vote], proposed: int | None = None) -> Decision:
    """Apply the policy to votes in order of arrival.

    A majority is reached early by more than half of the people to ask. When all of them have
    answered, the most frequent choice counts, and each tie asks one more person. If a class is
    proposed, people who name other classes agree that the proposed one is wrong.

    With reliability, a class is chosen when all people have answered. Here the votes alone decide;
    `settle_due` also considers who voted.

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
    if rules.policy == "majority" or (rules.policy == "reliability" and proposed is not None):
        return _find_majority(rules.answers, votes, proposed)
    if rules.policy == "reliability":
        return _when_all_answered(rules.answers, votes)
    if not votes:
        return Decision(None, None, 1)
    vote = votes[0] if rules.policy == "first" else votes[-1]
    return Decision(vote.choice, vote.at, 0)


def mark_counting(
    rules: LabelRules, question: Question, given: Sequence[GivenAnswer]
) -> tuple[GivenAnswer, ...]:
    """Mark the answers to a question that count.

    These are its votes and, if it is decided, only those that agree with the decision.
    """
    votes = {
        one.answer: Vote(one.annotator, one.kind, one.label, one.at)
        for one in given
        if one.outcome == "accepted" and not one.withdrawn
    }
    if question.state == "open":
        choice = decide(rules, tuple(votes.values()), question.proposed).choice
    else:
        kinds = {state: kind for kind, state in STATES.items()}
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


def _when_all_answered(people: int, votes: Sequence[Vote]) -> Decision:
    """Choose a class if at least half of the people name one, else what most others say."""
    if len(votes) < people:
        return Decision(None, None, people - len(votes))
    named = [vote.choice for vote in votes if vote.kind == "label"]
    others = [vote.choice for vote in votes if vote.kind != "label"]
    chosen = named if len(named) >= len(others) else others
    return Decision(Counter(chosen).most_common(1)[0][0], votes[people - 1].at, 0)


def _side(choice: Winner, proposed: int | None) -> Winner:
    """Return what a vote says about the proposed class; the vote itself if none is proposed."""
    if proposed is None or choice[0] == "skip" or choice == ("label", proposed):
        return choice
    return _NO


def _winner(side: Winner, people: int, votes: Sequence[Vote], proposed: int | None) -> Winner:
    """Return what counts; after a "no", a class or "none of these" if more than half say so."""
    if side != _NO:
        return side
    denials = [vote.choice for vote in votes if _side(vote.choice, proposed) == _NO]
    choice, most = Counter(denials).most_common(1)[0]
    return choice if 2 * most > people else _NO


def is_withdrawn() -> ColumnElement[bool]:
    """Select whether a later row withdraws an answer."""
    return exists().where(_undo.c.withdraws == answers.c.answer)


def is_vote() -> ColumnElement[bool]:
    """Select whether a row of the answers counts."""
    return and_(answers.c.kind != "undo", answers.c.outcome == "accepted", ~is_withdrawn())


def votes_on(connection: Connection, question: int) -> tuple[Vote, ...]:
    """Return the votes on a question in order of arrival."""
    query = select(answers).where(answers.c.question == question, is_vote())
    rows = connection.execute(query.order_by(answers.c.answer))
    return tuple(read_row(Vote, row) for row in rows)
