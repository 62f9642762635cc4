"""Versions of the model as files: the source model, candidates, and reading them back."""

from __future__ import annotations

import copy
from pathlib import Path

from torch import nn

from attakit.errors import StateError
from attakit.nn.classifier import Classifier
from attakit.nn.weights import load_weights, save_weights, weights_hash
from attakit.service.storage.rows import Turn, Version
from attakit.service.storage.versions import LEARNER, VersionStore

SOURCE = 0
_SOURCE_TURN = -1
_LOOK_BACK = 100  # promotions of one version in a row are rare
_SOURCE_FILE = "source.safetensors"


class VersionFiles:
    """The folder with one safetensors file for each version.

    Versions differ from the source model in their weights alone.
    """

    def __init__(self, folder: Path, versions: VersionStore, source: Classifier) -> None:
        self.folder = folder
        self.source = source
        self._versions = versions

    def begin(self, at: float) -> None:
        """Make the source model version 0 and let it answer, if the folder is new."""
        weights = weights_hash(self.source)
        known = self._versions.get([SOURCE])
        if not known:
            save_weights(self.source, self.folder / _SOURCE_FILE)
            self._versions.add(Version(SOURCE, _SOURCE_TURN, _SOURCE_FILE, weights, 0, at))
        elif known[SOURCE].weights != weights:
            raise StateError(
                f"The learner: the folder {self.folder} was begun with the source model "
                f"{known[SOURCE].weights}, now it is {weights}. Give the same weights, or another "
                f"folder."
            )
        if self._versions.current() is None:
            self._versions.promote(SOURCE, "It is the source model.", LEARNER, key="source")

    def write(self, model: nn.Module, turn: Turn, received: int) -> Version:
        """Save a candidate that was made with `received` labels.

        One of the same turn that is there already stays as it is: it may have been promoted since.
        """
        known = self._versions.of_turn(turn.number)
        if known is not None:
            return known
        file = f"turn-{turn.number:09d}.safetensors"
        # On disk before the database says that it is there.
        save_weights(model, self.folder / file, sync=True)
        number = self._versions.next_number()
        return self._versions.add(
            Version(number, turn.number, file, weights_hash(model), received, turn.at)
        )

    def load(self, version: Version) -> Classifier:
        """A version as it would answer requests: in the source model's shape and norm policy."""
        if version.number == SOURCE:
            return self.source
        model = copy.deepcopy(self.source)
        load_weights(model, self.folder / version.file)
        return model.eval()

    def clean(self, keep: int) -> None:
        """Delete drafts and the files of old versions.

        The newest `keep` stay, and as many of those that answered last, at least two.
        """
        answered = self._versions.get(promoted_versions(self._versions)[: max(2, keep)])
        kept = {version.file for version in (*self._versions.recent(keep), *answered.values())}
        # What a learner left that was killed, before or after it gave a draft its name, goes too.
        for path in (*self.folder.glob("turn-*"), *self.folder.glob(".turn-*")):
            if path.name not in kept:
                path.unlink(missing_ok=True)


def promoted_versions(versions: VersionStore) -> tuple[int, ...]:
    """The version that answers now, the one that answered before it, and so on, each once."""
    order = [promotion.version for promotion in versions.promotions(limit=_LOOK_BACK)]
    return tuple(dict.fromkeys(order))
