"""Which of several answers counts: the first, that of most people, or the newest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from attakit.service.storage.records import AnswerKind, GivenAnswer, LabelRules, Question

_KINDS = {"answered": "label", "skipped": "skip", "none": "none"}  # by the state of the question

Choice = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class Vote:
    """An accepted answer that was not withdrawn."""

    annotator: str
    kind: AnswerKind
    label: int | None
    at: float

    @property
    def choice(self) -> Choice:
        return self.kind, self.label


@dataclass(frozen=True, slots=True)
class Decision:
    """What the answers so far come to.

    Parameters
    ----------
    choice
        Kind and label that count; None while it is open.
    at
        When the answer came that decided.
    wanted
        People still to be asked.
    """

    choice: Choice | None
    at: float | None
    wanted: int


def decide(rules: LabelRules, votes: Sequence[Vote]) -> Decision:
    """Apply the policy to votes in the order in which they came.

    A majority is reached early by more than half of the people to be asked. Once all of them
    answered, the choice of most counts, and each tie asks one more person.

    Examples
    --------
    >>> said = [Vote("Ada", "label", 3, 0.0), Vote("Bob", "label", 5, 1.0)]
    >>> decide(LabelRules("first"), said).choice, decide(LabelRules("newest"), said).choice
    (('label', 3), ('label', 5))
    >>> decide(LabelRules("majority", answers=2), said)
    Decision(choice=None, at=None, wanted=1)
    """
    if rules.policy == "majority":
        return _find_majority(rules.answers, votes)
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
        choice = decide(rules, tuple(votes.values())).choice
        counting = {number for number, vote in votes.items() if choice in (None, vote.choice)}
    else:
        chosen = (_KINDS.get(question.state), question.label)
        counting = {number for number, vote in votes.items() if chosen == vote.choice}
    return tuple(replace(one, counts=one.answer in counting) for one in given)


def _find_majority(people: int, votes: Sequence[Vote]) -> Decision:
    counts: Counter[Choice] = Counter()
    for number, vote in enumerate(votes, start=1):
        counts[vote.choice] += 1
        (choice, most), *others = counts.most_common(2)
        leads = not others or most > others[0][1]
        if leads and (2 * most > people or number >= people):
            return Decision(choice, vote.at, 0)
    return Decision(None, None, max(people - len(votes), 1))
