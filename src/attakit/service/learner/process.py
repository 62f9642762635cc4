"""The process of the learner: its loop, its manners towards the machine, and how it ends."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from attakit.bench.stopping import stoppable
from attakit.errors import StateError
from attakit.nn.classifier import Classifier
from attakit.service.learner.audit import Decode
from attakit.service.learner.live import LiveLearner
from attakit.service.settings import LabelTable, ServiceSettings
from attakit.service.storage.records import LabelRules
from attakit.service.storage.storage import open_storage

log = logging.getLogger(__name__)

POLL_SECONDS = 0.5
CLEAN_SECONDS = 60.0
_LOCK_FILE = "learner.lock"


def run_learner(
    settings: ServiceSettings,
    source: Classifier,
    decode: Decode,
    *,
    clock: Callable[[], float] = time.time,
    stop: threading.Event | None = None,
    parent: int | None = None,
) -> None:
    """Learn until told to stop: by the event, by SIGTERM, or because the parent has ended.

    Parameters
    ----------
    settings
        Of the service.
    source
        The source model.
    decode
        Makes an input of a stored content.
    clock
        Tells the time.
    stop
        Ends the loop after the present turn.
    parent
        Process that started this one; without it there is nobody to learn for.
    """
    behave(settings)
    storage = open_storage(
        settings.folder,
        settings.database,
        labels=label_rules(settings.labels, len(settings.classes)),
        clock=clock,
    )
    stopped = "The learner was stopped in the middle of a turn; it will take that turn again."
    with storage, alone(settings.folder), stoppable(stopped) as signalled:
        learner = LiveLearner(settings, storage, source, decode, clock=clock)
        learner.resume()
        log.info("The learner is at turn %d.", learner.memory.turn)
        _work(learner, clock, lambda: signalled.is_set() or _is_over(stop, parent))
        learner.save()
    log.info("The learner ended after turn %d.", learner.memory.turn)


def behave(settings: ServiceSettings) -> None:
    """Take as little of the machine as the settings say."""
    torch.set_num_threads(settings.learning.threads)
    more = settings.learning.niceness - os.nice(0)
    if more > 0:
        os.nice(more)


def label_rules(table: LabelTable, classes: int) -> LabelRules:
    """What the database must know about labels."""
    return LabelRules(
        policy=table.policy,
        answers=table.answers,
        lease_seconds=table.lease_seconds,
        settle_seconds=table.settle_seconds,
        expiry_seconds=table.expiry_seconds,
        classes=classes,
    )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside, no other learner works on the folder. The lock ends with the process, however."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK_FILE).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StateError(
                f"The learner: another one works on {folder}. Stop it, or use another folder."
            ) from error
        yield


def _work(learner: LiveLearner, clock: Callable[[], float], is_over: Callable[[], bool]) -> None:
    cleaned = clock()
    while not is_over():
        busy = learner.look()
        if clock() - cleaned >= CLEAN_SECONDS:
            learner.clean()
            cleaned = clock()
        if not busy:
            time.sleep(POLL_SECONDS)


def _is_over(stop: threading.Event | None, parent: int | None) -> bool:
    asked = stop is not None and stop.is_set()
    return asked or (parent is not None and os.getppid() != parent)
