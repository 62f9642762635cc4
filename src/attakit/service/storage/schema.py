"""The schema of a database: create it, recognise it, and upgrade it without losing a row."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, select

from attakit.errors import StateError
from attakit.service.storage.tables import facts, metadata, revisions

if TYPE_CHECKING:
    from alembic.script.base import Script

log = logging.getLogger(__name__)

HEAD = "0007"  # the newest revision in `migrations/`
_FIRST = "0001"  # revision of databases from before migrations existed
_MIGRATIONS = Path(__file__).with_name("migrations")
_MARKER = {"name": "schema", "value": 2}  # versions without migrations refuse this value


def find_revision(connection: Connection) -> str | None:
    """Return the revision of the tables; None if the database has none of ours."""
    inspector = inspect(connection)
    if inspector.has_table(revisions.name):
        return connection.scalar(select(revisions.c.version_num))
    if not inspector.has_table(facts.name):
        return None
    schema = connection.scalar(select(facts.c.value).where(facts.c.name == _MARKER["name"]))
    return _FIRST if schema == 1 else f"schema {schema!r}"


def create_tables(connection: Connection) -> None:
    """Create all tables in an empty database, as if every migration had run."""
    metadata.create_all(connection)
    connection.execute(revisions.insert().values(version_num=HEAD))
    connection.execute(facts.insert().values(_MARKER))


def find_migrations(found: str | None, name: str) -> list[Script]:
    """Return the migrations after a revision, oldest first; `StateError` for an unknown one.

    `name` is the database's name in errors.
    """
    from alembic.script import ScriptDirectory  # noqa: PLC0415  as below

    scripts = ScriptDirectory(str(_MIGRATIONS), version_locations=[str(_MIGRATIONS)])
    oldest_first = [*scripts.walk_revisions()][::-1]
    known = [None, *(script.revision for script in oldest_first)]
    if found not in known:
        raise StateError(
            f"Storage: {name} has tables that this version of attakit does not know (revision "
            f"{found!r}, the newest known is {HEAD!r}). Install the version of attakit that "
            "created them, or a newer one. Or use another folder or database."
        )
    return oldest_first[known.index(found) :]


def upgrade_tables(connection: Connection, migrations: Sequence[Script], name: str) -> None:
    """Run migrations in the connection's transaction, which no other writer may share.

    On SQLite, foreign keys must be off: a table is copied into a new one, and removing the old one
    would remove rows that refer to it.
    """
    # Alembic takes 0.2 seconds to import, and only an upgrade needs it.
    from alembic.operations import Operations  # noqa: PLC0415
    from alembic.runtime.migration import MigrationContext  # noqa: PLC0415

    context = MigrationContext.configure(connection)
    for migration in migrations:
        migration.module.upgrade(Operations(context))
        log.info("upgraded the tables: %s", migration.doc)
    _check_references(connection, name)
    revisions.create(connection, checkfirst=True)
    connection.execute(revisions.delete())
    connection.execute(revisions.insert().values(version_num=HEAD))


def _check_references(connection: Connection, name: str) -> None:
    if connection.dialect.name == "sqlite" and (
        broken := connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    ):
        raise StateError(
            f"Storage: {name} was not upgraded, because a row of the table {broken[0]!r} refers to "
            f"a missing row of {broken[2]!r}. Nothing was changed. Restore a backup or report this."
        )
