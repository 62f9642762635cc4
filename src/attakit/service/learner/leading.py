"""Leader election: one learner of a deployment works, the others wait to take over."""

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
LOCK_SECONDS = 10.0  # until the learner of a killed service notices
POLL_SECONDS = 0.5  # between two attempts of a waiting learner


@contextmanager
def leading(
    settings: ServiceSettings, storage: Storage, is_over: Callable[[], bool]
) -> Iterator[Callable[[], None] | None]:
    """Wait until this process is the only learner; it stays so inside the block.

    It yields a function that raises `StateError` if the role was lost, because another learner may
    have it now. It yields None if the process must end before it gets the role.

    A learner notices with a delay that it lost the role. Meanwhile it does no harm: the turn number
    is the fence. A turn can be planned, and a checkpoint counts, only if no later one is known.
    Within the last turn, both leaders do the same.
    """
    role = storage.claim(ROLE)
    with ExitStack() as stack:
        stack.callback(role.release)
        if not _wait_for(role.hold, is_over):
            yield None
            return
        if settings.files is None:  # the folder belongs to it, and has one learner too
            stack.enter_context(exclusive_lock(settings.folder / LOCK_FILE, LOCK_SECONDS))
        if storage.is_shared:
            storage.events.add("learner", _name(), pid=os.getpid())

        def check() -> None:
            if not role.hold():
                raise StateError(
                    "The learner: it lost its connection to the database, and with it the lead. "
                    "Another learner may work now. Start this one again, and it will wait."
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
