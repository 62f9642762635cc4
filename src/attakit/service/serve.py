"""Put a service together: storage, predictor, learner and pages, started and stopped in order."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import uvicorn
from fastapi import FastAPI

from attakit.errors import SettingError
from attakit.service.follow import Follower
from attakit.service.learner.process import begin, run_learner
from attakit.service.models import version_model
from attakit.service.predictor import Predictor
from attakit.service.settings import ServiceSettings
from attakit.service.storage import LabelRules, Storage, open_storage
from attakit.service.supervise import Supervisor
from attakit.service.web.app import create_app


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
    settings: ServiceSettings, *, started: Callable[[str], None] = lambda _address: None
) -> None:
    """Run a service until it is told to stop by Ctrl-C or SIGTERM.

    Parameters
    ----------
    settings
        Of the service. With port 0 any free port is taken.
    started
        Called with the address once requests are answered.
    """
    with open_service_storage(settings) as storage:
        check_open_address(settings.server.host, storage)
        with _listening(settings) as listener, running(settings, storage) as app:
            host, port = listener.getsockname()[:2]
            address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
            config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False)
            _Server(config, lambda: started(address)).run(sockets=[listener])


@contextmanager
def running(settings: ServiceSettings, storage: Storage) -> Iterator[FastAPI]:
    """The parts of a service around its app: the promoted model, and the learner beside it."""
    server = settings.server
    begin(settings, storage)
    with ExitStack() as stack:
        predictor = stack.enter_context(
            Predictor(
                None,
                batch_size=server.batch_size,
                batch_seconds=server.batch_milliseconds / 1000,
                threads=server.threads,
            )
        )
        follower = Follower(storage.versions, predictor, partial(version_model, settings))
        follower.look()
        follower.start()
        stack.callback(follower.stop)
        supervisor = Supervisor(
            partial(run_learner, settings),
            died=lambda code: storage.events.add("learner died", "server", code=code),
        )
        supervisor.start()
        stack.callback(supervisor.stop)
        yield create_app(storage, predictor, settings, learning=lambda: supervisor.is_alive)


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


def open_service_storage(settings: ServiceSettings) -> Storage:
    """What a service remembers, by its settings."""
    labels = settings.labels
    rules = LabelRules(
        policy=labels.policy,
        answers=labels.answers if labels.policy == "majority" else 1,
        lease_seconds=labels.lease_seconds,
        settle_seconds=labels.settle_seconds,
        expiry_seconds=labels.expiry_seconds,
    )
    return open_storage(settings.folder, settings.database, labels=rules)


def check_open_address(host: str, storage: Storage) -> None:
    """Raise `SettingError` if strangers could reach a service that has no token."""
    if not is_loopback(host) and not storage.tokens.any():
        raise SettingError(
            f"server.host: {host} can be reached from other machines, and there is no token yet: "
            f"everybody could do everything. Make one with `attakit token create NAME --role "
            f"admin`, or listen on 127.0.0.1."
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
