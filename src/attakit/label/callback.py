"""Callback: the caller's function answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attakit.errors import SettingError
from attakit.label.classes import check_classes
from attakit.label.packing import (
    check_state,
    pack_answers,
    pack_queries,
    unpack_answers,
    unpack_queries,
)
from attakit.label.said import Class, Said, answer_from, confirmation_from
from attakit.queries import Answer, Query, SampleId


class Callback:
    """Answers each question with a function from a sample's name to its class.

    A yes/no question gets yes if the class is the proposed one, else no. To ask a person yes or no
    instead, pass `confirm`.

    `ask` only stores the questions. `collect` calls the function once per question, in the order of
    asking, and the loop continues when it returns. So let it look things up, or wait for a person
    only if the stream can wait too. Errors inside the function reach the caller unchanged. Answers
    given before the error are kept for the next collect.

    Parameters
    ----------
    function
        Gets the name of a sample and returns its class index, its class name (if classes are
        given), or None to skip it. It may also return a set of classes ("one of these"), or how
        likely the classes are: a list of numbers or a dictionary from classes to numbers. To look
        at the sample, fetch it by its name.
    confirm
        Answers yes/no questions: gets the name of a sample and the proposed class (its name if
        classes are given), and returns True, False, or None to skip it.
    classes
        Names of the classes, in the order of the model's outputs.
    annotator
        Name that signs the answers.

    Examples
    --------
    >>> images = {"a.png": "a picture of a dog"}
    >>> oracle = Callback(lambda name: images[name].split()[-1], classes=["cat", "dog"])
    >>> oracle.ask([Query(SampleId("a.png"), step=0)])
    >>> [answer.label for answer in oracle.collect()]
    [1]
    """

    def __init__(
        self,
        function: Callable[[SampleId], Said],
        *,
        confirm: Callable[[SampleId, Class], bool | None] | None = None,
        classes: Sequence[str] | None = None,
        annotator: str = "callback",
    ) -> None:
        who = type(self).__name__
        if not callable(function):
            raise SettingError(
                f"{who}: the function must take a sample's name and return its class, got "
                f"{function!r}. For a table of labels use KnownLabels."
            )
        self.function = function
        self.confirm = confirm
        self.classes = None if classes is None else check_classes(who, classes)
        self.annotator = annotator
        self._open: list[Query] = []
        self._ready: list[Answer] = []

    @property
    def pending(self) -> int:
        """Number of questions whose answer has not been collected."""
        return len(self._open) + len(self._ready)

    def ask(self, queries: Sequence[Query]) -> None:
        """Store questions for the next collect."""
        self._open.extend(queries)

    def collect(self) -> tuple[Answer, ...]:
        """Call the function for every stored question, and return its answers."""
        while self._open:
            self._ready.append(self._answer(self._open[0]))
            del self._open[0]
        answers = tuple(self._ready)
        self._ready = []
        return answers

    def state_dict(self) -> dict[str, Any]:
        return {"open": pack_queries(self._open), "ready": pack_answers(self._ready)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        check_state(type(self).__name__, state, ("open", "ready"))
        self._open = unpack_queries(state["open"])
        self._ready = unpack_answers(state["ready"])

    def _answer(self, query: Query) -> Answer:
        who = type(self).__name__
        if query.proposed is None or self.confirm is None:
            said = self.function(query.sample)
            return answer_from(who, query, said, self.annotator, self.classes)
        proposed = query.proposed if self.classes is None else self.classes[query.proposed]
        confirmed = self.confirm(query.sample, proposed)
        return confirmation_from(who, query, confirmed, self.annotator)
