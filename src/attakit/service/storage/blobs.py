"""BlobTable: whole files in a table of the database, for deployments without an object store."""

from __future__ import annotations

from sqlalchemy import Column, Float, LargeBinary, MetaData, String, Table, delete, select

from attakit.service.storage.database import Database

# Separate from the other tables: created when first needed, which on one machine is never.
_metadata = MetaData()
_blobs = Table(
    "blobs",
    _metadata,
    Column("name", String, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("at", Float, nullable=False),
)


class BlobTable:
    """Contents by name. PostgreSQL allows at most 1 GB for each."""

    place = "the database"

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_made = False

    def put(self, name: str, content: bytes) -> None:
        """Store a content under a name, and replace any old one."""
        self._make()
        row = {"name": name, "content": content, "at": self._database.clock()}
        with self._database.write() as connection:
            connection.execute(delete(_blobs).where(_blobs.c.name == name))
            connection.execute(_blobs.insert().values(row))

    def get(self, name: str) -> bytes | None:
        """Return the content of a name; None if there is none."""
        self._make()
        found = self._database.scalar(select(_blobs.c.content).where(_blobs.c.name == name))
        return None if found is None else bytes(found)

    def names(self, start: str) -> list[str]:
        """Return all names with this prefix."""
        self._make()
        query = select(_blobs.c.name).where(_blobs.c.name.startswith(start, autoescape=True))
        with self._database.read() as connection:
            return list(connection.scalars(query))

    def remove(self, name: str) -> None:
        """Remove a name, if it exists."""
        self._make()
        with self._database.write() as connection:
            connection.execute(delete(_blobs).where(_blobs.c.name == name))

    def _make(self) -> None:
        if not self._is_made:
            with self._database.write() as connection:
                _metadata.create_all(connection)
            self._is_made = True
