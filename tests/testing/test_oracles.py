"""Every oracle passes the check, and broken ones do not."""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from attakit.label import Callback, Delayed, Expiring, KnownLabels, Noisy, Skipping, Terminal
from attakit.queries import Answer, Oracle, Query, SampleId
from attakit.testing.oracles import check_oracle

SAMPLES = [SampleId(f"{number}.png") for number in range(6)]
LABELS = {sample: number % 3 for number, sample in enumerate(SAMPLES)}


def known() -> KnownLabels:
    return KnownLabels(LABELS)


def terminal() -> Terminal:
    screen: list[str] = []

    def read(prompt: str) -> str:
        if prompt.startswith("y or n"):
            return "y"
        name = next(line for line in reversed(screen) if line.startswith("Which"))
        return str(LABELS[SampleId(name.removeprefix("Which class is ").removesuffix("?"))] + 1)

    return Terminal(["cat", "dog", "owl"], read=read, write=screen.append)


ORACLES: Mapping[str, Callable[[], Oracle]] = {
    "known": known,
    "callback": lambda: Callback(LABELS.get),
    "terminal": terminal,
    "delayed": lambda: Delayed(known(), rounds=2),
    "jitter": lambda: Delayed(known(), rounds=0, jitter=4),
    "noisy": lambda: Noisy(known(), rate=0.5, classes=3),
    "skipping": lambda: Skipping(known(), rate=0.5),
    "expiring": lambda: Expiring(Delayed(known(), rounds=0, jitter=3), rounds=2),
    "delayed expiry": lambda: Delayed(
        Expiring(Delayed(known(), rounds=2), rounds=1), rounds=1, jitter=1
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_oracle_behaves(name: str) -> None:
    check_oracle(ORACLES[name], SAMPLES)


class Blocking(KnownLabels):
    """Waits for something that never comes."""

    def collect(self) -> tuple[Answer, ...]:
        if self.pending:
            threading.Event().wait()
        return ()


class Repeating(KnownLabels):
    """Hands everything over again with every collect."""

    def __init__(self) -> None:
        super().__init__(LABELS)
        self.given: list[Answer] = []

    def collect(self) -> tuple[Answer, ...]:
        self.given += super().collect()
        return tuple(self.given)


class SkippingTwice(Skipping):
    """Says of every question twice that it is skipped."""

    def collect(self) -> tuple[Answer, ...]:
        return super().collect() * 2


class Forgetful(Delayed):
    """Saves nothing of what it holds."""

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "waits": [], "held": []}


class Miscounting(KnownLabels):
    """Never has anything pending."""

    @property
    def pending(self) -> int:
        return 0


class Talkative(KnownLabels):
    """Speaks without being asked."""

    def collect(self) -> tuple[Answer, ...]:
        return super().collect() or (Answer(Query(SAMPLES[0], 0), 1, "me"),)


class Silent(KnownLabels):
    """Never answers."""

    def collect(self) -> tuple[Answer, ...]:
        return ()


class Relabelling(KnownLabels):
    """Gives each label as it was told to."""

    def __init__(self, label: object, annotator: str = "known") -> None:
        super().__init__(LABELS, annotator=annotator)
        self.label = label

    def collect(self) -> tuple[Answer, ...]:
        return tuple(
            Answer(answer.query, self.label, answer.annotator)  # type: ignore[arg-type]
            for answer in super().collect()
        )


class Sharing(KnownLabels):
    """Keeps the caller's list instead of what is in it."""

    def ask(self, queries: Sequence[Query]) -> None:
        if queries:
            self._open = queries  # type: ignore[assignment]


class Leaking(KnownLabels):
    """Gives its own list away as the state."""

    def __init__(self) -> None:
        super().__init__(LABELS)
        self.log: list[str] = []

    def ask(self, queries: Sequence[Query]) -> None:
        super().ask(queries)
        self.log += ["asked"]

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "log": self.log}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict({"open": state["open"]})


class Pickling(KnownLabels):
    """Saves objects that a safe loader refuses."""

    def state_dict(self) -> dict[str, Any]:
        return {"open": list(self._open)}


class Rolling(KnownLabels):
    """Draws its labels from global random state, or from one that all share."""

    def __init__(self, draw: Callable[[], int]) -> None:
        super().__init__(LABELS)
        self.draw = draw

    def collect(self) -> tuple[Answer, ...]:
        return tuple(Answer(answer.query, self.draw(), "die") for answer in super().collect())


def drawing_from_everywhere() -> int:
    random.random()
    np.random.rand()
    return 1


SHARED = random.Random(0)

BROKEN: Mapping[str, tuple[Callable[[], Oracle], str]] = {
    "blocking": (lambda: Blocking(LABELS), r"collect\(\) did not return within 0.2 seconds"),
    "repeating": (Repeating, "again after its answer"),
    "skipping twice": (lambda: SkippingTwice(known(), rate=1), r"The oracle skipped .* twice"),
    "forgetful": (lambda: Forgetful(known(), rounds=2), "still open after 100 collects"),
    "miscounting": (
        lambda: Miscounting(LABELS),
        "After asking 6 questions, pending must be 6, .* but it is 0",
    ),
    "talkative": (lambda: Talkative(LABELS), "which it was never asked"),
    "silent": (lambda: Silent(LABELS), "18 questions were still open after 100 collects"),
    "negative label": (lambda: Relabelling(-1), "is -1; it must be a class index or None"),
    "array label": (lambda: Relabelling(np.int64(1)), "must be a class index or None"),
    "anonymous": (lambda: Relabelling(1, annotator=""), "does not say who gave it"),
    "sharing": (
        lambda: Sharing(LABELS),
        "After asking 6 questions, pending must be 6, .* but it is 0",
    ),
    "leaking": (Leaking, r"state_dict\(\) must copy"),
    "pickling": (lambda: Pickling(LABELS), r"state_dict\(\)\['open'\]\[0\] is of type Query"),
    "differing": (lambda: Rolling(lambda: SHARED.randrange(10**9)), "from one factory differ"),
    "global": (lambda: Rolling(drawing_from_everywhere), "global random state"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_oracle_is_caught(name: str) -> None:
    factory, complaint = BROKEN[name]
    # Only where it must run out may patience be short: a busy machine halts any call for a moment.
    patience = 0.2 if name == "blocking" else 60.0

    with pytest.raises(AssertionError, match=complaint):
        check_oracle(factory, SAMPLES, patience=patience)


def test_error_inside_an_oracle_arrives_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        check_oracle(lambda: Callback(lambda name: 1 // 0), SAMPLES)


def test_one_sample_is_too_few() -> None:
    with pytest.raises(AssertionError, match="two different samples"):
        check_oracle(known, SAMPLES[:1] * 2)
