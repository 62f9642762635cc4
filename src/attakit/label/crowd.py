"""Crowd: several people answer each question, and their answers are combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from attakit.errors import SettingError, check_choice, check_count
from attakit.label.dawid_skene import Reliability, Vote, estimate_consensus, weighted_class
from attakit.label.packing import (
    check_state,
    pack_answers,
    pack_queries,
    unpack_answers,
    unpack_queries,
)
from attakit.queries import Answer, Oracle, Query, SampleId
from attakit.randomness import generator

CROWD = "crowd"
Settling = Literal["majority", "reliability"]


class Crowd:
    """Asks several people each question, and returns one answer.

    With `majority` every answer counts the same, and the first one wins a tie. With `reliability`
    attakit estimates from all answers so far how reliable each person is (`estimate_consensus`),
    and weighs answers accordingly. Yes/no questions are always settled by majority.

    A question costs its price once, no matter how many people answer it.

    Parameters
    ----------
    people
        Oracles that answer. Each must sign with a different name.
    classes
        How many classes there are.
    answers
        How many people answer each question.
    settle
        Which answer counts: `majority` or `reliability`.
    soft
        With `reliability`, return how likely each class is. Otherwise the most likely class becomes
        the label, with a weight from 0 (no better than chance) to 1 (certain).
    seed
        Seed that decides who is asked each question.

    Examples
    --------
    >>> from attakit.label import KnownLabels, Noisy
    >>> labels = dict.fromkeys("abcdefgh", 1)
    >>> people = [KnownLabels(labels, annotator=name) for name in ("Ada", "Bob")]
    >>> people.append(Noisy(KnownLabels(labels, annotator="Eve"), rate=1, classes=3))
    >>> crowd = Crowd(people, classes=3, soft=False)
    >>> crowd.ask([Query(SampleId(name), step=0) for name in labels])
    >>> {answer.label for answer in crowd.collect()}
    {1}
    >>> crowd.reliabilities["Ada"].accuracy > 0.8 > crowd.reliabilities["Eve"].accuracy
    True
    """

    def __init__(
        self,
        people: Sequence[Oracle],
        *,
        classes: int,
        answers: int = 3,
        settle: Settling = "reliability",
        soft: bool = True,
        seed: int = 0,
    ) -> None:
        check_count("Crowd", "classes", classes, at_least=2)
        check_count("Crowd", "answers", answers, at_least=1)
        check_choice("Crowd", "settle", settle, get_args(Settling))
        if answers > len(people):
            raise SettingError(
                f"Crowd: {answers} people must answer each question, but there are {len(people)}. "
                f"Lower answers, or add people."
            )
        self.people = tuple(people)
        self.classes = classes
        self.answers = answers
        self.settle = settle
        self.soft = soft
        self.seed = seed
        self.reliabilities: Mapping[str, Reliability] = {}
        self._open: dict[Query, dict[int, Answer]] = {}  # answers so far, by person
        self._votes: dict[tuple[Hashable, str], Vote] = {}

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been handed over."""
        return len(self._open)

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask each question to some of the people."""
        chosen = [(query, self._choose(query)) for query in queries]
        for place, person in enumerate(self.people):
            own = [query for query, places in chosen if place in places]
            if own:
                person.ask(own)
        self._open.update({query: {} for query in queries})

    def collect(self) -> tuple[Answer, ...]:
        """Return the answers of questions that everyone asked has answered."""
        for place, person in enumerate(self.people):
            for answer in person.collect():
                if answer.query in self._open:
                    self._open[answer.query].setdefault(place, answer)
        complete = [query for query, said in self._open.items() if len(said) == self.answers]
        ready = {query: self._in_order(query, self._open.pop(query)) for query in complete}
        if self.settle == "majority":
            return tuple(_majority(query, said) for query, said in ready.items())
        return self._weigh(ready)

    def state_dict(self) -> dict[str, Any]:
        said = [(place, each) for own in self._open.values() for place, each in own.items()]
        return {
            "people": [person.state_dict() for person in self.people],
            "open": pack_queries(self._open),
            "places": [place for place, _ in said],
            "said": pack_answers(each for _, each in said),
            "votes": [[str(vote.question), vote.annotator, vote.label] for vote in self._all],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state("Crowd", state, ("people", "open", "places", "said", "votes"))
        for person, saved in zip(self.people, state["people"], strict=True):
            person.load_state_dict(saved)
        self._open = {query: {} for query in unpack_queries(state["open"])}
        for place, answer in zip(state["places"], unpack_answers(state["said"]), strict=True):
            self._open[answer.query][place] = answer
        self._votes = {}
        self._note(Vote(SampleId(sample), who, label) for sample, who, label in state["votes"])
        self.reliabilities = estimate_consensus(self._all, self.classes).annotators

    @property
    def _all(self) -> list[Vote]:
        return list(self._votes.values())

    def _note(self, votes: Iterable[Vote]) -> None:
        """Store votes. If a person voted twice about a sample, the newer vote counts."""
        self._votes.update({(vote.question, vote.annotator): vote for vote in votes})

    def _choose(self, query: Query) -> list[int]:
        """Choose the people to ask, in order."""
        draw = generator(self.seed, "crowd", f"{query.sample}/{query.step}")
        places: list[int] = draw.permutation(len(self.people))[: self.answers].tolist()
        return places

    def _in_order(self, query: Query, said: Mapping[int, Answer]) -> list[Answer]:
        return [said[place] for place in self._choose(query)]

    def _weigh(self, ready: Mapping[Query, Sequence[Answer]]) -> tuple[Answer, ...]:
        self._note(
            Vote(query.sample, answer.annotator, answer.label)
            for query, said in ready.items()
            for answer in said
            if query.kind == "class" and answer.label is not None
        )
        found = estimate_consensus(self._all, self.classes)
        self.reliabilities = found.annotators
        return tuple(
            self._answer(query, found.chances[query.sample])
            if any(answer.label is not None for answer in said) and query.kind == "class"
            else _majority(query, said)
            for query, said in ready.items()
        )

    def _answer(self, query: Query, chances: tuple[float, ...]) -> Answer:
        if self.soft:
            return Answer(query, None, CROWD, chances=chances)
        label, weight = weighted_class(chances)
        return Answer(query, label, CROWD, weight=weight)


def _majority(query: Query, said: Sequence[Answer]) -> Answer:
    """Return what most people said, without skips. The earliest answer wins a tie."""
    spoken = [replace(answer, annotator=CROWD) for answer in said if answer.says_something]
    if not spoken:
        return Answer.skipped(query, CROWD)
    (answer, _count), *_others = Counter(spoken).most_common(1)
    return answer
