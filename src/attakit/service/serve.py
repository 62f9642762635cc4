"""Put a service together: storage, predictor, learner and pages, started and stopped in order."""

from __future__ import annotations

import importlib
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from stat import S_IMODE

import uvicorn
from fastapi import FastAPI

from attakit.errors import SettingError
from attakit.nn.classifier import Classifier
from attakit.processes.interrupt import Interrupted, ignoring_ctrl_c, stoppable
from attakit.service.compatibility import check_belonging
from attakit.service.follower import Follower
from attakit.service.inputs import Inputs
from attakit.service.learner.candidates import VersionFiles
from attakit.service.lock import exclusive_lock
from attakit.service.logs import logging_to
from attakit.service.models import VERSIONS, source_model
from attakit.service.predictor import Predictor
from attakit.service.preflight import try_out
from attakit.service.saved_settings import keep_settings, open_service
from attakit.service.storage import Storage
from attakit.service.storage.permissions import is_shared
from attakit.service.storage.storage import make_folder
from attakit.service.supervisor import Supervisor
from attakit.service.web.app import create_app
from attakit.service.web.security import is_loopback
from attakit.settings.service import ServiceSettings

log = logging.getLogger(__name__)

LOCK_FILE = "server.lock"
LEARNER_LOG = "learner.log"
FAILED = 1  # exit code of a learner that is worth starting again
_SUSPICIOUS = 3  # ends of the learner in a row, each soon after its start
_KEEPS_DYING = (
    f"The learner has ended {_SUSPICIOUS} times in a row and is started again and again; the log "
    f"says why. The promoted model goes on answering."
)


class _Server(uvicorn.Server):
    """Says when it answers requests."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell()


def serve(
    settings: ServiceSettings,
    *,
    started: Callable[[str], None] = lambda _address: None,
    log_file: Path | None = None,
) -> None:
    """Run a service until it is told to stop by Ctrl-C or SIGTERM.

    Parameters
    ----------
    settings
        Of the service. With port 0 any free port is taken.
    started
        Called with the address once requests are answered.
    log_file
        Where the log goes; that of the learner goes to `LEARNER_LOG` beside it. None is the error
        stream for both.
    """
    source = source_model(settings)
    try_out(settings, source)
    make_folder(settings.folder)  # with a database elsewhere nobody else does
    with open_service(settings) as storage:
        check_open_address(settings, storage)
        # The log is opened here, because nobody else may write to it.
        with exclusive_lock(settings.folder / LOCK_FILE), logging_to(log_file):
            _warn_of_readers(settings.folder)
            with (
                _listening(settings) as listener,
                running(settings, storage, source, log_file) as app,
            ):
                _answer(app, listener, started)


def _answer(app: FastAPI, listener: socket.socket, started: Callable[[str], None]) -> None:
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    config = configure(app)
    # Requests are ended by then; uvicorn raises the signal that ended it once more.
    with suppress(Interrupted), stoppable("Stopped.", at_once=True):
        _Server(config, lambda: started(address)).run(sockets=[listener])


@contextmanager
def running(
    settings: ServiceSettings, storage: Storage, source: Classifier, log_file: Path | None = None
) -> Iterator[FastAPI]:
    """The parts of a service around its app: the promoted model, and the learner beside it."""
    server = settings.server
    check_belonging(settings, storage)
    files = VersionFiles(settings.folder / VERSIONS, storage.versions, source)
    files.begin(time.time())
    keep_settings(settings)  # not before: a start that fails leaves those of the last one
    with ExitStack() as stack:
        predictor = stack.enter_context(
            Predictor(
                None,
                batch_size=server.batch_size,
                batch_seconds=server.batch_milliseconds / 1000,
                threads=server.threads,
            )
        )
        follower = Follower(
            storage.versions, predictor, files.load, unreadable=partial(_record_unreadable, storage)
        )
        follower.sync()
        stack.enter_context(follower)
        supervisor = stack.enter_context(
            Supervisor(
                partial(learn, settings, os.getpid(), log_file),
                died=partial(_record_death, storage),
            )
        )
        yield create_app(storage, predictor, settings, learning=lambda: supervisor.is_alive)


def _record_death(storage: Storage, code: int, in_a_row: int) -> None:
    storage.events.add("learner died", "server", code=code)
    if in_a_row == _SUSPICIOUS:
        storage.events.add("alarm", "server", what="learning", text=_KEEPS_DYING)


def _record_unreadable(storage: Storage, number: int) -> None:
    text = (
        f"Version {number} is promoted, but its file cannot be used: the one before goes on "
        f"answering. Bring another version back."
    )
    storage.events.add("alarm", "server", what="serving", text=text)


def learn(settings: ServiceSettings, parent: int, log_file: Path | None = None) -> None:
    """What the learner's process does: learn for a service until that one ends.

    Parameters
    ----------
    settings
        Of the service.
    parent
        Process that answers requests.
    log_file
        As in `serve`.
    """
    own_file = log_file and log_file.with_name(LEARNER_LOG)
    with logging_to(own_file), _telling(), ignoring_ctrl_c():  # that reaches a whole terminal
        # Not above: the server imports this module too, and the monitors of drift take it seconds.
        process = importlib.import_module("attakit.service.learner.process")
        decode = Inputs(settings.input, pixels=settings.server.pixels).decode
        process.run_learner(settings, source_model(settings), decode, parent=parent)


def _warn_of_readers(folder: Path) -> None:
    """A folder that was there before keeps its mode: others may be meant to read it."""
    if is_shared(folder):
        log.warning(
            "other users of this machine may enter the folder %s (mode %o), which holds images, "
            "answers and the key of sessions; unless they should, run: chmod 700 %s",
            folder,
            S_IMODE(folder.stat().st_mode),
            folder,
        )


def configure(app: FastAPI) -> uvicorn.Config:
    """How an app is served.

    uvicorn would believe whatever X-Forwarded-For a program on this machine makes up, and so let
    it have as many addresses as it likes; it is asked to only where the operator names proxies.
    """
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers="FORWARDED_ALLOW_IPS" in os.environ,  # uvicorn reads who is meant
    )


@contextmanager
def _telling() -> Iterator[None]:
    """End the process if something fails inside, with a line in the log like all others."""
    try:
        yield
    except Exception:
        log.exception("the learner failed")
        sys.exit(FAILED)


@contextmanager
def _listening(settings: ServiceSettings) -> Iterator[socket.socket]:
    """The socket of a service; it is taken first, so that nothing starts if it cannot be had."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise SettingError(
                f"server: {host}:{port} cannot be listened on ({error.strerror}). Choose another "
                f"with --port or --host; --port 0 takes any free one."
            ) from error
        yield listener


def check_open_address(settings: ServiceSettings, storage: Storage) -> None:
    """Raise `SettingError` if strangers could reach a service that has no token."""
    host = settings.server.host
    if not is_loopback(host) and not storage.tokens.any():
        elsewhere = settings.database is not None
        place = "--database URL" if elsewhere else f"--folder {settings.folder}"
        raise SettingError(
            f"server.host: {host} can be reached from other machines, and there is no token yet: "
            f"everybody could do everything. Make one with `attakit token create NAME --role "
            f"admin {place}`, or listen on 127.0.0.1."
        )
