"""Model versions as files: save the source model and candidates, and load them."""

from __future__ import annotations

from pathlib import Path

from torch import nn

from attakit.errors import ModelError, StateError
from attakit.nn.classifier import Classifier
from attakit.nn.frozen_head import NETWORK, FrozenHead
from attakit.nn.head_files import difference, load_model, save_difference
from attakit.nn.weights import save_weights, weights_hash
from attakit.service.blobs import Blobs
from attakit.service.storage.rows import Turn, Version
from attakit.service.storage.turns import TurnStore
from attakit.service.storage.versions import LEARNER, VersionStore

SOURCE = 0
_SOURCE_TURN = -1
_LOOK_BACK = 100  # the same version is rarely promoted many times in a row
_FILES = "turn-*"
SOURCE_FILE = "source.safetensors"


class VersionFiles:
    """One safetensors file for each version.

    A version has different weights than the source model, or a head on top of it.
    """

    def __init__(self, blobs: Blobs, versions: VersionStore, source: Classifier) -> None:
        self.blobs = blobs
        self.source = source
        self._versions = versions
        self._source_hash = weights_hash(source)

    def name(self, model: nn.Module) -> str:
        """Return the hash of a model's weights: the source's hash if a head changes nothing."""
        if isinstance(model, FrozenHead) and not difference(model, self.source.model):
            return self._source_hash
        return weights_hash(model)

    def is_source(self, weights: str) -> bool:
        """True if a hash is that of the source model."""
        return weights == self._source_hash

    def begin(self, at: float) -> None:
        """Save the source model as version 0 and serve it, if the folder is new."""
        check_not_lost(self.blobs, self._versions)
        weights = self._source_hash
        known = self._versions.get([SOURCE])
        if not known:
            with self.blobs.writing(SOURCE_FILE) as path:
                save_weights(self.source, path)
            self._versions.add(Version(SOURCE, _SOURCE_TURN, SOURCE_FILE, weights, 0, at))
        elif known[SOURCE].weights != weights:
            raise StateError(
                f"The learner: {self.blobs.place} was started with the source model "
                f"{known[SOURCE].weights}, but now it is {weights}. Use the same weights, or "
                "another folder."
            )
        if self._versions.current() is None:
            self._versions.promote(SOURCE, "It is the source model.", LEARNER, key="source")

    def write(self, model: nn.Module, weights: str, turn: Turn, received: int) -> Version:
        """Save a candidate with the hash `weights` that was made with `received` labels.

        For a `FrozenHead`, only the difference from the source model is saved. An existing version
        of the same turn stays as it is, because it may have been promoted.
        """
        known = self._versions.of_turn(turn.number)
        if known is not None:
            return known
        file = f"turn-{turn.number:09d}.safetensors"
        # The file must be on disk before the database lists it.
        with self.blobs.writing(file) as path:
            if isinstance(model, FrozenHead):
                save_difference(model, self.source.model, path, sync=True)
            else:
                save_weights(model, path, sync=True)
        number = self._versions.next_number()
        return self._versions.add(Version(number, turn.number, file, weights, received, turn.at))

    def load(self, version: Version) -> Classifier:
        """Load a version as it would answer requests."""
        if version.number == SOURCE:
            return self.source
        with self.blobs.reading(version.file) as path:
            return load_version(self.source, version, path)

    def clean(self, keep: int) -> None:
        """Delete drafts and the files of old versions.

        The newest `keep` stay, and the same number of those that answered last, at least two. A
        file that no database row names stays: it may belong to a restored database.
        """
        answered = self._versions.get(promoted_versions(self._versions)[: max(2, keep)])
        kept = {version.file for version in (*self._versions.recent(keep), *answered.values())}
        for name in self._versions.known_files({*self.blobs.names(_FILES)} - kept):
            self.blobs.remove(name)
        self.blobs.remove_drafts(_FILES)  # drafts of a killed learner


def load_version(source: Classifier, version: Version, path: Path) -> Classifier:
    """Load a version as a classifier, in the source model's shape and norm policy.

    Parameters
    ----------
    source
        The source model. It is not changed.
    version
        The version. The loaded model must have its hash.
    path
        The version's file.
    """
    model = load_model(source.model, path)
    if weights_hash(model) != version.weights:
        raise ModelError(
            f"The learner: {path} and the source model do not reproduce version {version.number} "
            f"({version.weights}). The file is damaged, or another source model is in use. Restore "
            "the one that changed."
        )
    if not isinstance(model, FrozenHead):
        return Classifier(model, features=source.features, precision=source.precision).eval()
    features = None if source.features is None else f"{NETWORK}{source.features}"
    return Classifier(model, features=features, precision=source.precision).eval()


def check_not_lost(blobs: Blobs, versions: VersionStore) -> None:
    """Raise `StateError` if version files exist but the database knows no version."""
    if not versions.recent(limit=1) and blobs.names(_FILES):
        raise StateError(
            f"{blobs.place} holds learned versions of a model, but the database is empty. The "
            "right database was lost, or this is another one. Restore it, or use another folder."
        )


def check_not_older(checkpoints: Blobs, turns: TurnStore) -> None:
    """Raise `StateError` if a checkpoint is from a later turn than the database has."""
    names = checkpoints.names(_FILES)  # before the turns, since a learner may be at work
    newest = max((int(name[5:14]) for name in names), default=-1)
    last = turns.last()
    if newest > last:
        raise StateError(f"{checkpoints.place}: {older(newest, last)}")


def older(turn: int, last: int) -> str:
    """Say that a checkpoint is ahead of the database."""
    return (
        f"the newest checkpoint is from turn {turn}, but the log in the database ends with turn "
        f"{last}. Restore the database that belongs to it. If that one is lost, run `attakit "
        "rebuild`, which continues from the log as it is."
    )


def promoted_versions(versions: VersionStore) -> tuple[int, ...]:
    """Return the served version, the one served before it, and so on, each once."""
    order = [promotion.version for promotion in versions.promotions(limit=_LOOK_BACK)]
    return tuple(dict.fromkeys(order))
