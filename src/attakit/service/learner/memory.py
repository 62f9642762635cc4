"""Everything that a turn of the learner changes, and its checkpoints on disk.

Later turns can be replayed from a checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from attakit.errors import StateError
from attakit.label.budget import exact
from attakit.label.ledger import Ledger
from attakit.methods.asking import AskingMethod
from attakit.protocols import Forgets, Method
from attakit.queries import SampleId
from attakit.service.blobs import Blobs
from attakit.service.learner.allowance import ONE, Amount, PlannedBudget, PurposeCounts
from attakit.service.learner.drift import Drift
from attakit.service.storage.storage import KeyValueStore
from attakit.store.tensor_file import load_state, save_state

SAVED_TURN = "saved_turn"
_NAME = "turn-{:09d}.safetensors"
ANY_CHECKPOINT = "turn-*.safetensors"


@dataclass
class Memory:
    """The method, the label account, the drift monitors, and some counts."""

    method: Method
    ledger: Ledger
    drift: Drift
    turn: int = -1  # the last one taken
    asked_learn: float = 0  # in prices of a question about the class
    asked_audit: int = 0
    asked_by_class: dict[int, int] = field(default_factory=dict)  # by guess, minus refunds
    boosted_until: int = -1  # the last turn with faster asking after a drift alarm
    since_candidate: int = 0  # turns with learning since the last version
    version: int = 0  # number of the last version

    @property
    def asked(self) -> PurposeCounts:
        """Questions asked so far by purpose; refunds are not subtracted."""
        return PurposeCounts(self.asked_learn, self.asked_audit)

    @property
    def left(self) -> Amount:
        """The exact rest of the budget, in questions about the class."""
        budget = self.ledger.budget
        assert isinstance(budget, PlannedBudget)
        return budget.left

    @property
    def price(self) -> Fraction:
        """Cost of a question of the method; 1 for a question about the class."""
        is_yes_no = isinstance(self.method, AskingMethod) and self.method.question == "yes_no"
        return exact(self.ledger.budget.yes_no_price) if is_yes_no else ONE

    def forget(self, samples: Sequence[SampleId]) -> None:
        """Remove samples wherever they are stored."""
        if samples:
            self.ledger.forget(samples)
            if isinstance(self.method, Forgets):
                self.method.forget(samples)

    def count(self, kind: int, change: int) -> None:
        """Count a question about a class, or a refund."""
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
            self.method.load_state_dict(self._with_rate(state))
            self.ledger.load_state_dict(state["ledger"])
            self.drift.load_state_dict(state["drift"])
            for name in _COUNTS:
                setattr(self, name, state["counts"][name])
        except KeyError as error:
            raise StateError(
                f"The learner: its checkpoint lacks {error}. Continue with the version that wrote "
                f"it, or start a new folder."
            ) from error

    def _with_rate(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the method's state. Before methods had a rate, the memory had a clock for it."""
        method: Mapping[str, Any] = state["method"]
        if "rate" in method or not isinstance(self.method, AskingMethod):
            return method
        clock = state["counts"]["clock"]
        # A service only needs to know whether any samples were seen.
        return {**method, "rate": {"seen": int(clock), "owed": 0.0, "clock": clock}}


_PARTS = ("method", "ledger", "drift")  # these have their own state
_COUNTS = [one.name for one in fields(Memory) if one.name not in _PARTS]


class UnusableCheckpoint(StateError):
    """The learner's memory is lost or does not fit. Another start would not help."""


class Checkpoints:
    """Stores the newest memory of the learner.

    When a file is safely written, the value `SAVED_TURN` names its turn. The samples of older turns
    are then no longer needed.
    """

    def __init__(self, blobs: Blobs, key_values: KeyValueStore) -> None:
        self.blobs = blobs
        self._key_values = key_values

    def save(self, memory: Memory) -> None:
        """Write the memory, and delete older files when it is safe."""
        new = _NAME.format(memory.turn)
        with self.blobs.writing(new) as path:
            save_state(path, memory.state_dict())
        newest = self._key_values.change(
            SAVED_TURN, lambda saved: memory.turn if saved is None else max(saved, memory.turn)
        )
        if newest > memory.turn:
            raise StateError(
                f"The learner: another one has saved a later turn than {memory.turn}, so it leads "
                "now. This one stops."
            )
        self._remove_before(new)

    def load(self, memory: Memory) -> bool:
        """Load the newest checkpoint into the memory; False if there was never one."""
        files = self.blobs.names(ANY_CHECKPOINT)
        saved = self._key_values.get(SAVED_TURN, -1)
        if not files:
            if saved >= 0:
                raise UnusableCheckpoint(
                    f"The learner: its checkpoint after turn {saved} is missing in "
                    f"{self.blobs.place}. Put it back, or run `attakit rebuild`."
                )
            return False
        try:
            with self.blobs.reading(files[-1]) as path:
                memory.load_state_dict(load_state(path))
        except StateError as error:
            raise UnusableCheckpoint(str(error)) from error
        # A killed learner may have left drafts, and older files with data that was forgotten later.
        self._remove_before(files[-1])
        return True

    def _remove_before(self, kept: str) -> None:
        """Remove files of earlier turns. Later ones belong to a learner that has taken over."""
        for name in self.blobs.names(ANY_CHECKPOINT):
            if name < kept:
                self.blobs.remove(name)
        self.blobs.remove_drafts(ANY_CHECKPOINT)
