"""Team: models answer first, people answer the rest, within one budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from attakit.errors import SettingError
from attakit.label.packing import (
    check_state,
    pack_answers,
    pack_queries,
    unpack_answers,
    unpack_queries,
)
from attakit.queries import Answer, Oracle, Query

TEAM = "team"


class Team:
    """Asks models first. Questions on which one abstains or two disagree go to people.

    If models settle a question, it costs what their answers cost together. The rest of its price is
    refunded. If people settle it, it costs its full price, including what the models said. Without
    people it is skipped and refunded.

    Parameters
    ----------
    models
        Oracles that answer first, such as `ModelOracle`. If several agree, the answer of the first
        one counts.
    people
        The oracle that gets the rest. With None the rest stays unanswered.

    Examples
    --------
    >>> from attakit.label import KnownLabels, ModelOracle
    >>> from attakit.queries import SampleId
    >>> model = ModelOracle(lambda names: [1 if name == "easy" else None for name in names])
    >>> team = Team([model], KnownLabels({"easy": 0, "hard": 0}))
    >>> team.ask([Query(SampleId(name), step=0) for name in ("easy", "hard")])
    >>> [(answer.annotator, answer.label) for answer in team.collect()]
    [('model', 1), ('known', 0)]
    """

    def __init__(self, models: Sequence[Oracle], people: Oracle | None = None) -> None:
        if not models:
            raise SettingError("Team: at least one model is needed, got none.")
        self.models = tuple(models)
        self.people = people
        self._open: dict[Query, dict[int, Answer]] = {}  # what each model said, by its position
        self._passed_on: dict[Query, None] = {}

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been handed over."""
        return len(self._open) + len(self._passed_on)

    def ask(self, queries: Sequence[Query]) -> None:
        """Ask every model."""
        self._open.update({query: {} for query in queries})
        for model in self.models:
            model.ask(list(queries))

    def collect(self) -> tuple[Answer, ...]:
        """Return what models agree on and what people said. Pass other questions on to people."""
        for place, model in enumerate(self.models):
            for answer in model.collect():
                if answer.query in self._open:
                    self._open[answer.query].setdefault(place, answer)
        complete = [query for query, said in self._open.items() if len(said) == len(self.models)]
        settled = [self._settle(query, self._open.pop(query)) for query in complete]
        answers = [answer for answer in settled if answer is not None]
        self._pass_on([q for q, answer in zip(complete, settled, strict=True) if answer is None])
        for answer in () if self.people is None else self.people.collect():
            self._passed_on.pop(answer.query, None)
            answers.append(answer)
        return tuple(answers)

    def state_dict(self) -> dict[str, Any]:
        said = [(place, each) for row in self._open.values() for place, each in row.items()]
        return {
            "models": [model.state_dict() for model in self.models],
            "people": None if self.people is None else self.people.state_dict(),
            "open": pack_queries(self._open),
            "places": [place for place, _ in said],
            "said": pack_answers(each for _, each in said),
            "passed_on": pack_queries(self._passed_on),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        entries = ("models", "people", "open", "places", "said", "passed_on")
        check_state("Team", state, entries)
        for model, saved in zip(self.models, state["models"], strict=True):
            model.load_state_dict(saved)
        if self.people is not None:
            self.people.load_state_dict(state["people"])
        self._open = {query: {} for query in unpack_queries(state["open"])}
        for place, answer in zip(state["places"], unpack_answers(state["said"]), strict=True):
            self._open[answer.query][place] = answer
        self._passed_on = dict.fromkeys(unpack_queries(state["passed_on"]))

    def _settle(self, query: Query, said: Mapping[int, Answer]) -> Answer | None:
        """Return the answer that all models agree on, or None if people must answer."""
        answers = [said[place] for place in sorted(said)]
        agree = len({_conclusion(answer) for answer in answers}) == 1
        if agree and all(answer.says_something for answer in answers):
            costs = [answer.cost for answer in answers if answer.cost is not None]
            return replace(answers[0], cost=sum(costs) if len(costs) == len(answers) else None)
        return None if self.people is not None else Answer.skipped(query, TEAM)

    def _pass_on(self, queries: Sequence[Query]) -> None:
        if self.people is not None and queries:
            self._passed_on.update(dict.fromkeys(queries))
            self.people.ask(list(queries))


def _conclusion(answer: Answer) -> object:
    """Reduce an answer to a class, or to the set of classes it allows or excludes."""
    if answer.chances is not None:
        return answer.chances.index(max(answer.chances))
    return answer.label if answer.label is not None else (answer.excluded, answer.among)
