"""Checkpoints: the learner's memory on disk, from which the later turns can be replayed."""

from __future__ import annotations

from pathlib import Path

from attakit.errors import StateError
from attakit.service.learner.memory import Memory
from attakit.service.storage.storage import KeyValueStore
from attakit.store.tensor_file import load_state, save_state

SAVED_TURN = "saved_turn"
_NAME = "turn-{:09d}.safetensors"
_ANY = "turn-*.safetensors"


class UnusableCheckpoint(StateError):
    """The learner's memory is lost or does not fit: it would be so again after another start."""


class Checkpoints:
    """Keeps the newest memory of the learner in a folder.

    Once a file is safe, the value `SAVED_TURN` names its turn. What older turns took from the
    samples is then no longer needed.
    """

    def __init__(self, folder: Path, key_values: KeyValueStore) -> None:
        self.folder = folder
        self._key_values = key_values

    def save(self, memory: Memory) -> None:
        """Write the memory; older files go once it is safe."""
        new = self.folder / _NAME.format(memory.turn)
        save_state(new, memory.state_dict())
        self._key_values.set(SAVED_TURN, memory.turn)
        self._remove_all_but(new)

    def load(self, memory: Memory) -> bool:
        """Bring the memory to the newest checkpoint; False if there was never one."""
        files = self._files()
        saved = self._key_values.get(SAVED_TURN, -1)
        if not files:
            if saved >= 0:
                raise UnusableCheckpoint(
                    f"The learner: its checkpoint after turn {saved} is missing in {self.folder}. "
                    f"Put it back, or start the service in a new folder."
                )
            return False
        try:
            memory.load_state_dict(load_state(files[-1]))
        except StateError as error:
            raise UnusableCheckpoint(str(error)) from error
        # A learner that was killed may have left drafts, and older files, which hold what was
        # forgotten since.
        self._remove_all_but(files[-1])
        return True

    def _remove_all_but(self, kept: Path) -> None:
        for path in (*self._files(), *self.folder.glob(f".{_ANY}*")):
            if path != kept:
                path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(_ANY))
