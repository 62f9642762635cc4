"""Rebuild the learner's memory from the log of turns, when its checkpoint is lost or damaged."""

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
from attakit.service.learner.live import CHECKPOINTS, LiveLearner
from attakit.service.learner.memory import ANY_CHECKPOINT, SAVED_TURN
from attakit.service.storage import Storage
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

SET_ASIDE = "before-rebuild-"  # in front of the names of the checkpoints that were there


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuilt memory was made of."""

    turns: int  # that were taken again
    samples: int  # that these turns looked at
    lost_samples: int  # of these, how many have no content any more
    lost_lists: int  # turns that no longer say which samples they looked at
    set_aside: tuple[str, ...]  # checkpoints that were there, under their new names

    @property
    def is_exact(self) -> bool:
        """Whether the memory is the one that was lost, because the log is complete."""
        return not self.lost_samples and not self.lost_lists


def rebuild_memory(
    settings: ServiceSettings, storage: Storage, source: Classifier, decode: Decode
) -> Rebuilt:
    """Take all turns of the log again from the source model, and save the memory after the last.

    `decode` turns a stored content into an input. No learner may run meanwhile. Questions, answers
    and versions stay as they are, and so does what the budget has paid for. A turn looks at fewer
    samples if their contents were removed by [retention] or forgotten, so its memory can differ
    from the one that was lost.
    """
    first_look = iter([False])
    with leading(settings, storage, lambda: next(first_look, True)) as lead:
        if lead is None:
            raise StateError(
                "Rebuild: a learner works on this service. Stop the service, then run it again."
            )
        found = _look_at_log(storage)
        blobs = open_blobs(settings, storage, CHECKPOINTS)
        # What no longer fits stays under another name: nothing is deleted.
        aside = tuple(_set_aside(blobs, name) for name in blobs.names(ANY_CHECKPOINT))
        storage.key_values.set(SAVED_TURN, -1)
        with using_threads(settings.learning.threads):  # others would round differently
            learner = LiveLearner(settings, storage, source, decode)
            turns = learner.resume()
            learner.save()
        storage.events.add("rebuilt", "service", turns=turns)
    return Rebuilt(turns, *found, aside)


def _look_at_log(storage: Storage) -> tuple[int, int, int]:
    """Return how many samples the turns looked at, how many are lost, and how many lists are."""
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
