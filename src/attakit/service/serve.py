"""Assemble a service: start storage, predictor, learner and web app, and stop them in order."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from stat import S_IMODE
from typing import Protocol

import uvicorn
from fastapi import FastAPI

from attakit.errors import SettingError
from attakit.files import is_shared
from attakit.nn.classifier import Classifier
from attakit.processes.interrupt import Interrupted, ignoring_ctrl_c, stoppable
from attakit.service.blobs import open_blobs
from attakit.service.checks import (
    check_compatible,
    check_model_fits,
    check_open,
    check_shareable,
    make_first_token,
)
from attakit.service.follower import Follower
from attakit.service.inputs import Inputs
from attakit.service.learner.candidates import VersionFiles
from attakit.service.learner.leading import ROLE
from attakit.service.lock import exclusive_lock
from attakit.service.logs import logging_to
from attakit.service.models import VERSIONS, source_model
from attakit.service.predictor import Predictor
from attakit.service.saved_settings import open_service, save_settings, with_saved_method
from attakit.service.storage import Storage
from attakit.service.storage.storage import make_service_folder
from attakit.service.supervisor import Supervisor
from attakit.service.web.app import create_app
from attakit.service.web.connections import BoundedConfig, Connections
from attakit.service.web.examples import Examples
from attakit.settings.service import ServerTable, ServiceSettings

log = logging.getLogger(__name__)

LOCK_FILE = "server.lock"
LEARNER_LOG = "learner.log"
FAILED = 1  # exit code of a learner that should be restarted
_SUSPICIOUS = 3  # quick failures of the learner in a row
_KEEPS_DYING = (
    f"The learner has ended {_SUSPICIOUS} times in a row, each time soon after its start. The log "
    "says why. attakit restarts it again. The promoted model continues to answer."
)


class Started(Protocol):
    """A callback for the start of a server."""

    def __call__(self, address: str, *, token: str | None) -> None: ...


def ignore(address: str, *, token: str | None) -> None:
    """Do nothing at the start."""


class _Server(uvicorn.Server):
    """A server with a callback for the moment it accepts requests."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()


def serve(
    settings: ServiceSettings,
    *,
    started: Started = ignore,
    log_file: Path | None = None,
    learner: bool = True,
) -> None:
    """Run a service until Ctrl-C or SIGTERM.

    Parameters
    ----------
    settings
        The service's settings. With port 0 the system chooses a free port.
    started
        A callback for the moment when the server accepts requests. It gets the address and, at the
        first start, the administrator token, which is shown only once.
    log_file
        The log file of the server. The learner writes `LEARNER_LOG` in the same folder. None is
        standard error for both.
    learner
        False leaves learning to `attakit learn`. Then any number of servers may run.
    """
    if not learner:
        check_shareable(settings, "serve --no-learner")
    check_open(settings.server)
    settings = with_saved_method(settings)
    source = source_model(settings)
    check_model_fits(settings, source)
    Examples(settings.labelling, settings.classes)  # raises an error before anything is made
    if learner and settings.gate.known is not None:
        _check_known(settings)
    make_service_folder(settings.folder)  # also needed if the database is elsewhere
    with open_service(settings) as storage:
        # The log is opened with the lock held, because only one process may write to it.
        alone = learner or log_file is not None
        lock = exclusive_lock(settings.folder / LOCK_FILE) if alone else nullcontext()
        with lock, logging_to(log_file):
            _warn_if_shared(settings.folder)
            with (
                _listening(settings) as listener,
                running_service(settings, storage, source, log_file, learner=learner) as app,
            ):
                token = make_first_token(settings, storage)
                _serve_app(app, listener, partial(started, token=token))


def _check_known(settings: ServiceSettings) -> None:
    """Raise `SettingError` if the known examples cannot be read."""
    from attakit.service.learner.known import read_known  # noqa: PLC0415  rarely needed

    read_known(settings, Inputs(settings.input, pixels=settings.server.pixels).decode)


def _serve_app(app: FastAPI, listener: socket.socket, started: Callable[[str], None]) -> None:
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    config = uvicorn_config(app, app.state.service.settings.server)
    # After the last request, uvicorn raises the signal that stopped it again.
    with suppress(Interrupted), stoppable("Stopped.", at_once=True):
        _Server(config, lambda: started(address)).run(sockets=[listener])


@contextmanager
def running_service(
    settings: ServiceSettings,
    storage: Storage,
    source: Classifier,
    log_file: Path | None = None,
    *,
    learner: bool = True,
) -> Iterator[FastAPI]:
    """Serve the promoted model inside the block, and run the learner if wanted. Yields the app."""
    server = settings.server
    files = prepare_files(settings, storage, source)
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
        learning = storage.claim(ROLE).is_taken
        if learner:
            supervisor = stack.enter_context(
                Supervisor(
                    partial(run_learner_process, settings, os.getpid(), log_file),
                    died=partial(_record_death, storage),
                )
            )
            learning = supervisor.check_alive
        yield create_app(storage, predictor, settings, learning=learning)


def prepare_files(settings: ServiceSettings, storage: Storage, source: Classifier) -> VersionFiles:
    """Check that settings, database and files belong together, and set up a new service."""
    with storage.alone("start"):  # if several processes start together, the first sets it up
        check_compatible(settings, storage)
        files = VersionFiles(open_blobs(settings, storage, VERSIONS), storage.versions, source)
        files.begin(time.time())
    save_settings(settings)  # not earlier: a failed start must not replace the last settings
    return files


def _record_death(storage: Storage, code: int, in_a_row: int) -> None:
    storage.events.add("learner died", "server", code=code)
    if in_a_row == _SUSPICIOUS:
        storage.events.add("alarm", "server", what="learning", text=_KEEPS_DYING)


def _record_unreadable(storage: Storage, number: int) -> None:
    text = (
        f"Version {number} is promoted, but its file cannot be used. The version before it "
        "continues to answer. Roll back to another version."
    )
    storage.events.add("alarm", "server", what="serving", text=text)


def run_learner_process(
    settings: ServiceSettings, parent: int, log_file: Path | None = None
) -> None:
    """Run the learner until the service ends. This is the main function of the learner process.

    Parameters
    ----------
    settings
        The service's settings.
    parent
        The id of the process that answers requests.
    log_file
        The log file of the server, as in `serve`.
    """
    own_file = log_file and log_file.with_name(LEARNER_LOG)
    with logging_to(own_file), _logged_failure(), ignoring_ctrl_c():  # the server handles Ctrl-C
        # Imported here: the server imports this module too, and drift detection takes seconds.
        from attakit.service.learner.process import run_learner  # noqa: PLC0415

        decode = Inputs(settings.input, pixels=settings.server.pixels).decode
        run_learner(settings, source_model(settings), decode, parent=parent)


def _warn_if_shared(folder: Path) -> None:
    """Warn if other users may read the folder. An existing folder keeps its mode."""
    if is_shared(folder):
        log.warning(
            "other users of this machine may enter the folder %s (mode %o), which contains "
            "images, answers and the session key; to prevent this, run: chmod 700 %s",
            folder,
            S_IMODE(folder.stat().st_mode),
            folder,
        )


def uvicorn_config(app: FastAPI, server: ServerTable) -> BoundedConfig:
    """Return the configuration of the web server, with connection limits.

    By default uvicorn trusts the header X-Forwarded-For from any program on this machine, which
    could then fake any address. So the header counts only if the operator names proxies.
    """
    bounds = Connections(
        server.connections, head_seconds=server.head_seconds, stalled_seconds=server.body_seconds
    )
    return BoundedConfig(
        app,
        bounds,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers="FORWARDED_ALLOW_IPS" in os.environ,  # uvicorn reads the names
    )


@contextmanager
def _logged_failure() -> Iterator[None]:
    """Log an exception as one structured line, and end the process."""
    try:
        yield
    except Exception:
        log.exception("the learner failed")
        sys.exit(FAILED)


@contextmanager
def _listening(settings: ServiceSettings) -> Iterator[socket.socket]:
    """Bind the service's socket first, so that nothing starts if the address is taken."""
    host, port = settings.server.host, settings.server.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise SettingError(
                f"server: cannot listen on {host}:{port} ({error.strerror}). Choose another "
                "address with --port or --host; --port 0 takes any free port."
            ) from error
        yield listener
