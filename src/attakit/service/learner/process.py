"""The learner process: main loop, CPU priority and shutdown."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

from attakit.errors import ModelError, UnwritableFile
from attakit.nn.classifier import Classifier
from attakit.service.learner.audit import Decode
from attakit.service.learner.leading import leading
from attakit.service.learner.live import LiveLearner
from attakit.service.learner.memory import UnusableCheckpoint
from attakit.service.saved_settings import open_service
from attakit.service.storage.storage import Storage
from attakit.service.supervisor import GAVE_UP
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

POLL_SECONDS = 0.25  # the only way to find answers that settle at once
CLEAN_SECONDS = 60.0
_STOPPED = (  # the error may name a file, and not everyone who sees the alarm should see that
    "Learning has stopped. The log says why. If training diverged, lower the learning rate of "
    "[method]. If [method] was changed, change it back. If the checkpoint is lost or damaged, run "
    "`attakit rebuild`. Then start the service again."
)


def run_learner(
    settings: ServiceSettings,
    source: Classifier,
    decode: Decode,
    *,
    clock: Callable[[], float] = time.time,
    stop: threading.Event | None = None,
    parent: int | None = None,
) -> None:
    """Learn until the event `stop` is set, SIGTERM comes, or the process `parent` has ended.

    `decode` turns a stored content into an input.
    """
    limit_cpu(settings)
    # The server created the database. If it is gone now, a new one would spoil the rest.
    with (
        open_service(settings, clock=clock, new=False) as storage,
        ending_on_sigterm() as signalled,
    ):

        def is_over() -> bool:
            return signalled.is_set() or _is_over(stop, parent)

        with leading(settings, storage, is_over) as check_lead:
            if check_lead is None:
                return
            learner = LiveLearner(settings, storage, source, decode, clock=clock)
            with giving_up(storage):
                learner.resume()
                log.info("The learner is at turn %d.", learner.memory.turn)
                _work(learner, clock, is_over, check_lead)
            learner.save()
    log.info("The learner ended after turn %d.", learner.memory.turn)


def limit_cpu(settings: ServiceSettings) -> None:
    """Limit the CPU use of this process to what the settings say."""
    torch.set_num_threads(settings.learning.threads)
    threadpool_limits(settings.learning.threads)
    more = settings.learning.niceness - os.nice(0)
    if more > 0:
        os.nice(more)


@contextmanager
def ending_on_sigterm() -> Iterator[threading.Event]:
    """Let SIGTERM set the event inside the block, instead of ending the process during a turn."""
    end = threading.Event()
    in_main = threading.current_thread() is threading.main_thread()  # others get no signals
    before = signal.signal(signal.SIGTERM, lambda *_: end.set()) if in_main else None
    try:
        yield end
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def giving_up(storage: Storage) -> Iterator[None]:
    """End the process with an alarm if training diverges or the checkpoint does not fit.

    A restart would take the same turn with the same result. The promoted model continues to answer.
    A full disk is different: the learner starts again, and takes the turn once there is space.
    """
    try:
        yield
    except UnwritableFile:
        raise
    except (ModelError, UnusableCheckpoint):
        log.exception("The learner gives up.")
        storage.events.add("alarm", "learner", what="learning", text=_STOPPED)
        sys.exit(GAVE_UP)


def _work(
    learner: LiveLearner,
    clock: Callable[[], float],
    is_over: Callable[[], bool],
    check_lead: Callable[[], None],
) -> None:
    cleaned = -math.inf
    while not is_over():
        check_lead()
        busy = learner.run_once()
        if clock() - cleaned >= CLEAN_SECONDS:
            learner.clean()
            cleaned = clock()
        if not busy:
            time.sleep(learner.idle_seconds(POLL_SECONDS))


def _is_over(stop: threading.Event | None, parent: int | None) -> bool:
    asked = stop is not None and stop.is_set()
    return asked or (parent is not None and os.getppid() != parent)
