"""Storage faults of a running service, and hostile clients."""

from __future__ import annotations

import resource
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

from chaos_service import ChaosService
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from attakit.service.storage.database import LOCK

Fault = Callable[[], AbstractContextManager[None]]


class Faults:
    """Context managers that break a running service; each fault lasts inside its `with` block."""

    def __init__(self, service: ChaosService) -> None:
        self._service = service

    def of_storage(self) -> dict[str, Fault]:
        """Return the faults that the service's database can have."""
        on_file = self._service.database is None
        disk = self._service.disk
        return {
            **({} if disk is None else {"full disk": disk.full}),
            "files that cannot grow": self._no_growth,
            "read-only folder": self._read_only_folder,
            "locked database": self._locked_file if on_file else self._locked_server,
            "vanished database": self._moved_file if on_file else self._refusing_server,
        }

    @contextmanager
    def hostile_clients(self) -> Iterator[None]:
        """Open too many connections with slow heads, bodies without a token and an endless head."""
        place = urlsplit(self._service.address)
        done = threading.Event()
        with ExitStack() as stack:

            def attack() -> None:
                body = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
                for start in [b"GET /healthz HTTP/1.1\r\nx: ", body + b"x" * 900_000] * 400:
                    if done.is_set():
                        return
                    with suppress(OSError):
                        one = socket.create_connection((place.hostname, place.port), timeout=5)
                        stack.enter_context(one)
                        one.sendall(start)

            thread = threading.Thread(target=attack)
            thread.start()
            yield
            done.set()
            thread.join()

    @contextmanager
    def _read_only_folder(self) -> Iterator[None]:
        """Allow no file to be created or deleted. Open files can still be written."""
        live = self._service.live
        folders = [live, *(path for path in live.iterdir() if path.is_dir())]
        for folder in folders:
            folder.chmod(0o500)
        yield
        for folder in folders:
            folder.chmod(0o700)

    @contextmanager
    def _no_growth(self) -> Iterator[None]:
        """Allow server and learner no longer files, as under a quota."""
        processes = self._service.pids
        before = [resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in processes]
        for pid, (_, most) in zip(processes, before, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
        yield
        for pid, limits in zip(processes, before, strict=True):
            with suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)

    @contextmanager
    def _locked_file(self) -> Iterator[None]:
        connection = sqlite3.connect(
            self._service.live / "service.sqlite", timeout=60, isolation_level=None
        )
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")
        connection.close()

    @contextmanager
    def _moved_file(self) -> Iterator[None]:
        file = self._service.live / "service.sqlite"
        moved = file.rename(file.with_name("moved"))
        yield
        moved.rename(file)

    @contextmanager
    def _locked_server(self) -> Iterator[None]:
        engine = create_engine(str(self._service.database))
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
            yield
        engine.dispose()

    @contextmanager
    def _refusing_server(self) -> Iterator[None]:
        url = make_url(str(self._service.database))
        engine = create_engine(url.set(database="template1"), isolation_level="AUTOCOMMIT")
        refuse = f'ALTER DATABASE "{url.database}" ALLOW_CONNECTIONS {{}}'
        end = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
        with engine.connect() as connection:
            connection.execute(text(refuse.format("false")))
            connection.execute(end, {"name": url.database})
            yield
            connection.execute(text(refuse.format("true")))
        engine.dispose()
