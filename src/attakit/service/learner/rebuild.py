"""Rebuild the learner's memory from the log of turns, if its checkpoint is lost or damaged."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass

from attakit.errors import StateError
from attakit.nn.classifier import Classifier
from attakit.processes.threads import using_threads
from attakit.service.blobs import Blobs, open_blobs
from attakit.service.learner.audit import Decode
from attakit.service.learner.leading import leading
from attakit.service.learner.live import LiveLearner
from attakit.service.learner.memory import ANY_CHECKPOINT, SAVED_TURN
from attakit.service.models import CHECKPOINTS
from attakit.service.storage import Storage
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

SET_ASIDE = "before-rebuild-"  # prefix for the names of old checkpoints


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuilt memory is made of."""

    turns: int  # number of repeated turns
    samples: int  # samples in these turns
    lost_samples: int  # of these, samples without stored content
    lost_lists: int  # turns whose list of samples is gone
    set_aside: tuple[str, ...]  # old checkpoints, under their new names

    @property
    def is_exact(self) -> bool:
        """True if the log was complete, so that the memory equals the lost one."""
        return not self.lost_samples and not self.lost_lists


def rebuild_memory(
    settings: ServiceSettings, storage: Storage, source: Classifier, decode: Decode
) -> Rebuilt:
    """Repeat all turns of the log from the source model, and save the final memory.

    `decode` turns a stored content into an input. No learner may run meanwhile. Questions, answers,
    versions and the spent budget stay unchanged. If [retention] removed contents or samples were
    forgotten, a turn has fewer samples, and the memory can differ from the lost one.
    """
    first_look = iter([False])
    with leading(settings, storage, lambda: next(first_look, True)) as lead:
        if lead is None:
            raise StateError(
                "Rebuild: a learner works on this service. Stop the service and try again."
            )
        found = _look_at_log(storage)
        blobs = open_blobs(settings, storage, CHECKPOINTS)
        # The old files get another name: nothing is deleted.
        aside = tuple(_set_aside(blobs, name) for name in blobs.names(ANY_CHECKPOINT))
        storage.key_values.set(SAVED_TURN, -1)
        with using_threads(settings.learning.threads):  # others round differently
            learner = LiveLearner(settings, storage, source, decode)
            turns = learner.resume()
            learner.save()
        storage.events.add("rebuilt", "service", turns=turns)
    return Rebuilt(turns, *found, aside)


def _look_at_log(storage: Storage) -> tuple[int, int, int]:
    """Return the number of samples in the turns, of lost samples, and of lost lists."""
    samples = lost = lists = 0
    for turn, numbers in storage.turns.recent(storage.turns.last() + 1):
        kept = storage.samples.contents(turn.samples) if turn.samples else {}
        samples += len(turn.samples)
        lost += len(turn.samples) - len(kept)
        lists += not turn.samples and bool((numbers or {}).get("samples"))
    return samples, lost, lists


def _set_aside(blobs: Blobs, name: str) -> str:
    new = f"{SET_ASIDE}{name}"
    with blobs.reading(name) as old, blobs.writing(new) as path:
        shutil.copyfile(old, path)
    blobs.remove(name)
    return new
