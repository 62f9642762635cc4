"""`check_oracle`: the contract of every oracle. It raises AssertionError with a sentence."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, TypeVar

from attakit.errors import LabelError
from attakit.label.checking import checked_answer
from attakit.queries import Answer, Oracle, Query, SampleId
from attakit.testing.tiny import global_randomness

Result = TypeVar("Result")
Script = list[list[Query] | None]  # questions to ask, or None for a collect
Transcript = list[tuple[Answer, ...]]  # what each collect returned

MOST_COLLECTS = 100
EXTRA_COLLECTS = 2


def check_oracle(
    factory: Callable[[], Oracle], samples: Sequence[SampleId], *, patience: float = 2.0
) -> None:
    """Raise AssertionError, with a reason, unless an oracle keeps the contract.

    It must return at once. It must answer every question once and no other, including yes/no
    questions (an answer may still follow an expiry). It must count what is pending, leave global
    random state alone, and continue from a saved state, at any point, as if it had not stopped.

    Parameters
    ----------
    factory
        Makes a new oracle without questions. All of them must give the same answers.
    samples
        Names of at least two different samples that it can answer, within 100 collects.
    patience
        Seconds after which a call counts as blocking.

    Examples
    --------
    >>> from attakit.label import KnownLabels
    >>> samples = [SampleId("a"), SampleId("b")]
    >>> check_oracle(lambda: KnownLabels(dict.fromkeys(samples, 0)), samples)
    """
    _demand(len(set(samples)) >= 2, "check_oracle needs the names of two different samples.")
    randomness = global_randomness()
    _check_silence(_Watched(factory(), patience))
    script = _script(samples)
    expected = _play(_Watched(factory(), patience), script)
    again = _play(_Watched(factory(), patience), script)
    _check_alike(again, expected, "Two oracles from one factory differ")
    for cut in range(len(script) + 1):
        _check_resume(factory, script[:cut], script[cut:], expected, patience)
    _demand(
        randomness == global_randomness(),
        "The oracle changed the global random state of Python, NumPy or torch; "
        "it must use attakit.randomness.generator.",
    )


class _Watched:
    """An oracle under test: every call is checked."""

    def __init__(self, oracle: Oracle, patience: float) -> None:
        self.oracle = oracle
        self.patience = patience
        self.asked: frozenset[Query] = frozenset()
        self.answered: frozenset[Query] = frozenset()
        self.skipped: frozenset[Query] = frozenset()

    def replaced_by(self, oracle: Oracle) -> _Watched:
        """Watch another oracle as if it had done what this one did."""
        other = copy.copy(self)
        other.oracle = oracle
        return other

    def ask(self, queries: Sequence[Query]) -> None:
        handed = list(queries)
        _without_waiting("ask", lambda: self.oracle.ask(handed), self.patience)
        handed.clear()  # the list belongs to the caller, who may reuse it
        self.asked |= set(queries)
        self._check_pending(f"After asking {len(queries)} questions")

    def collect(self) -> tuple[Answer, ...]:
        answers = tuple(_without_waiting("collect", self.oracle.collect, self.patience))
        for answer in answers:
            self._check_answer(answer)
        self._check_pending(f"After a collect of {len(answers)} answers")
        return answers

    def _check_answer(self, answer: Answer) -> None:
        query, label = answer.query, answer.label
        _demand(query in self.asked, f"The oracle answered {query}, which it was never asked.")
        _demand(
            label is None or (type(label) is int and label >= 0),
            f"The label for {query} is {label!r}; it must be a class index or None.",
        )
        _check_content(answer)
        _demand(bool(answer.annotator), f"The answer to {query} does not say who gave it.")
        _demand(query not in self.answered, f"The oracle answered {query} again after its answer.")
        if answer.says_something:
            self.answered |= {query}
        else:
            _demand(query not in self.skipped, f"The oracle skipped {query} twice.")
            self.skipped |= {query}

    def _check_pending(self, when: str) -> None:
        expected = len(self.asked - self.answered - self.skipped)
        _demand(
            self.oracle.pending == expected,
            f"{when}, pending must be {expected}, the number of all questions so far whose answer "
            f"was not handed over, but it is {self.oracle.pending}.",
        )


def _check_content(answer: Answer) -> None:
    """Check that an answer says one thing, in valid numbers."""
    try:
        checked_answer("The oracle", answer)
    except LabelError as error:
        raise AssertionError(str(error)) from error


def _check_silence(oracle: _Watched) -> None:
    """Collect when nothing was asked. Any answer is then wrong."""
    for _ in range(EXTRA_COLLECTS):
        oracle.collect()
        oracle.ask([])


def _script(samples: Sequence[SampleId]) -> Script:
    """Return two waves of questions, the second while the first may be open.

    It asks about the same samples again at two later steps, in another order, and also yes/no
    questions about the first class. Those are different questions.
    """
    first = [Query(sample, 0) for sample in samples]
    second = [Query(sample, 1) for sample in reversed(samples)]
    yes_no = [Query(sample, 2, proposed=0) for sample in reversed(samples)]
    return [first, None, None, second + yes_no, None]


def _play(oracle: _Watched, script: Script) -> Transcript:
    """Follow the script, then collect until nothing is pending, and a little longer."""
    transcript = _follow(oracle, script)
    for _ in range(MOST_COLLECTS):
        if oracle.oracle.pending == 0:
            return transcript + [oracle.collect() for _ in range(EXTRA_COLLECTS)]
        transcript.append(oracle.collect())
    raise AssertionError(
        f"{oracle.oracle.pending} questions were still open after {MOST_COLLECTS} collects."
    )


def _follow(oracle: _Watched, script: Script) -> Transcript:
    transcript: Transcript = []
    for queries in script:
        if queries is None:
            transcript.append(oracle.collect())
        else:
            oracle.ask(queries)
    return transcript


def _check_resume(
    factory: Callable[[], Oracle],
    first: Script,
    rest: Script,
    expected: Transcript,
    patience: float,
) -> None:
    stopped = _Watched(factory(), patience)
    before = _follow(stopped, first)
    state = stopped.oracle.state_dict()
    _check_plain(state, "state_dict()")
    saved = copy.deepcopy(state)
    resumed = stopped.replaced_by(factory())
    resumed.oracle.load_state_dict(copy.deepcopy(state))
    _play(stopped, rest)
    _demand(
        state == saved, "A saved state changed while the oracle was used; state_dict() must copy."
    )
    after = _play(resumed, rest)
    _check_alike(
        after, expected[len(before) :], "A resumed oracle differs from an uninterrupted one"
    )


def _check_alike(given: Transcript, expected: Transcript, complaint: str) -> None:
    for collect, (some, others) in enumerate(zip_longest(given, expected, fillvalue=())):
        _demand(
            some == others,
            f"{complaint}: collect {collect} handed over {some} instead of {others}.",
        )


def _check_plain(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for key, entry in value.items():
            _check_plain(key, f"a key of {where}")
            _check_plain(entry, f"{where}[{key!r}]")
    elif type(value) in (list, tuple):
        for position, entry in enumerate(value):
            _check_plain(entry, f"{where}[{position}]")
    else:
        _demand(
            value is None or type(value) in (str, int, float, bool),
            f"{where} is of type {type(value).__name__}; a saved state holds only dictionaries, "
            f"lists, texts and numbers.",
        )


def _without_waiting(name: str, call: Callable[[], Result], patience: float) -> Result:
    results: list[Result] = []
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(patience)
    _demand(not thread.is_alive(), f"{name}() did not return within {patience} seconds.")
    if errors:
        raise errors[0]
    return results[0]


def _demand(condition: bool, sentence: str) -> None:
    # Not an assert statement, which python -O would remove.
    if not condition:
        raise AssertionError(sentence)
