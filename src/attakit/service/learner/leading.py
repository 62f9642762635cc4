"""Which learner leads: one of a deployment learns, the others wait to take over."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from attakit.errors import StateError
from attakit.service.lock import exclusive_lock
from attakit.service.storage.storage import Storage
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

ROLE = "learner"
LOCK_FILE = "learner.lock"
LOCK_SECONDS = 10.0  # in which the learner of a service that was killed notices it
POLL_SECONDS = 0.5  # after which a waiting learner looks again


@contextmanager
def leading(
    settings: ServiceSettings, storage: Storage, is_over: Callable[[], bool]
) -> Iterator[Callable[[], None] | None]:
    """Wait until this process is the one learner; inside it is, until it ends.

    It gives a function that raises `StateError` if the role was lost, since another learner may
    have it by now. It gives None if the process must end before it gets the role.

    Losing the role is noticed some time after it happened. What a learner does meanwhile does no
    harm: the number of its turn is the fence. A turn can be planned, and a checkpoint counts, only
    if no later one is known; what it does within the last turn is what the new leader does too.
    """
    role = storage.claim(ROLE)
    with ExitStack() as stack:
        stack.callback(role.release)
        if not _wait_for(role.hold, is_over):
            yield None
            return
        if settings.files is None:  # the folder is its own, and has one learner too
            stack.enter_context(exclusive_lock(settings.folder / LOCK_FILE, LOCK_SECONDS))
        if storage.is_shared:
            storage.events.add("learner", _name(), pid=os.getpid())

        def check() -> None:
            if not role.hold():
                raise StateError(
                    "The learner: it lost its connection to the database, and with it the lead. "
                    "Another learner may work now. Start this one again, and it waits."
                )

        yield check


def _wait_for(hold: Callable[[], bool], is_over: Callable[[], bool]) -> bool:
    waiting = False
    while not is_over():
        if hold():
            return True
        if not waiting:
            log.info("Another learner leads. This one waits to take over.")
            waiting = True
        time.sleep(POLL_SECONDS)
    return False


def _name() -> str:
    return f"learner on {socket.gethostname()}"
