"""All that a turn of the learner changes, in one place, so that it can be saved and replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from attakit.errors import StateError
from attakit.label.ledger import Ledger
from attakit.protocols import Forgets, Method
from attakit.queries import SampleId
from attakit.service.learner.allowance import PurposeCounts
from attakit.service.learner.drift import Drift


@dataclass
class Memory:
    """The method, the account of labels, the drift monitors, and some counts."""

    method: Method
    ledger: Ledger
    drift: Drift
    turn: int = -1  # the last one taken
    clock: float = 0.0  # steps of the selector so far: more than turns, after drift alarms
    asked_learn: int = 0
    asked_audit: int = 0
    asked_by_class: dict[int, int] = field(default_factory=dict)  # by guess, refunds subtracted
    boosted_until: int = -1  # the last turn in which a drift alarm makes the clock faster
    since_candidate: int = 0  # turns with learning since the last version
    version: int = 0  # number and hash of the last version
    weights: str = ""

    @property
    def asked(self) -> PurposeCounts:
        """Questions put so far, refunds not subtracted."""
        return PurposeCounts(self.asked_learn, self.asked_audit)

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


_PARTS = ("method", "ledger", "drift")  # have a state of their own
_COUNTS = [one.name for one in fields(Memory) if one.name not in _PARTS]
