"""All that a turn of the learner changes, in one place, so that it can be saved and replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attakit.errors import StateError
from attakit.label.ledger import Ledger
from attakit.protocols import Forgets, Method
from attakit.queries import SampleId
from attakit.service.learner.allowance import AskedCounts
from attakit.service.learner.drift import Drift

_COUNTS = (
    "turn",
    "asked_learn",
    "asked_audit",
    "asked_by_class",
    "boosted_until",
    "since_candidate",
    "version",
    "weights",
)


@dataclass
class Memory:
    """The method, the account of labels, the drift monitors, and some counts.

    Parameters
    ----------
    method
        Adapts.
    ledger
        Pays for questions.
    drift
        Watches the stream.
    turn
        Last one taken.
    asked_learn, asked_audit
        Questions put so far, refunds not subtracted.
    asked_by_class
        Questions of the method by guessed class, refunds subtracted.
    boosted_until
        Last turn that an alarm hurries.
    since_candidate
        Turns with learning since the last version was made.
    version, weights
        Number and hash of the version that was made last.
    """

    method: Method
    ledger: Ledger
    drift: Drift
    turn: int = -1
    asked_learn: int = 0
    asked_audit: int = 0
    asked_by_class: dict[int, int] = field(default_factory=dict)
    boosted_until: int = -1
    since_candidate: int = 0
    version: int = 0
    weights: str = ""

    @property
    def asked(self) -> AskedCounts:
        return AskedCounts(self.asked_learn, self.asked_audit)

    def forget(self, samples: Sequence[SampleId]) -> None:
        """Let go of samples wherever they are kept."""
        if samples:
            self.ledger.forget(samples)
            if isinstance(self.method, Forgets):
                self.method.forget(samples)

    def count(self, kind: int, change: int) -> None:
        """Count a question about a class, or one that is refunded."""
        self.asked_by_class[kind] = self.asked_by_class.get(kind, 0) + change

    def state_dict(self) -> dict[str, Any]:
        return {
            "method": self.method.state_dict(),
            "ledger": self.ledger.state_dict(),
            "drift": self.drift.state_dict(),
            "counts": {name: getattr(self, name) for name in _COUNTS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        try:
            self.method.load_state_dict(state["method"])
            self.ledger.load_state_dict(state["ledger"])
            self.drift.load_state_dict(state["drift"])
            for name in _COUNTS:
                setattr(self, name, state["counts"][name])
        except KeyError as error:
            raise StateError(
                f"The learner: its checkpoint lacks {error}. Continue with the version that wrote "
                f"it, or start a new folder."
            ) from error
