"""Blobs: storage for a service's weights and checkpoints, on one machine or for many.

The service writes and reads local files. With a folder, these are the files themselves. With a
store that several machines reach (a database table, or an object store through fsspec), attakit
copies them there and back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from attakit.errors import SettingError
from attakit.service.object_store import ObjectStore
from attakit.service.storage import Storage
from attakit.settings.service import ServiceSettings

IN_DATABASE = "database"


class Blobs(Protocol):
    """Whole files by name. `place` is the name of the location in messages."""

    place: str

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """Write a file to the path that the block receives. It is then stored under the name."""

    def reading(self, name: str) -> AbstractContextManager[Path]:
        """Read the file from the path that the block receives; it does not exist if it was lost."""

    def names(self, pattern: str = "*") -> list[str]:
        """Return the names that match a pattern, sorted."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""

    def remove_drafts(self, pattern: str) -> None:
        """Remove drafts that a killed process left, if their names match a pattern."""


class Store(Protocol):
    """Contents by name, in a place that all machines reach. Writes are atomic."""

    place: str

    def put(self, name: str, content: bytes) -> None: ...

    def get(self, name: str) -> bytes | None: ...

    def names(self, start: str) -> list[str]: ...

    def remove(self, name: str) -> None: ...


class FolderBlobs:
    """Files in a folder of this machine.

    Examples
    --------
    >>> with TemporaryDirectory() as place:
    ...     blobs = FolderBlobs(Path(place))
    ...     with blobs.writing("turn-1") as path:
    ...         _ = path.write_bytes(b"weights")
    ...     blobs.names("turn-*")
    ['turn-1']
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = str(folder)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        self.folder.mkdir(parents=True, exist_ok=True)
        yield self.folder / name  # functions that save weights and states replace it atomically

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        yield self.folder / name

    def names(self, pattern: str = "*") -> list[str]:
        found = (path.name for path in self.folder.glob(pattern) if path.is_file())
        return sorted(name for name in found if not name.startswith("."))

    def remove(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)

    def remove_drafts(self, pattern: str) -> None:
        for draft in self.folder.glob(f".{pattern.rstrip('*')}*"):
            draft.unlink(missing_ok=True)


class StoredBlobs:
    """Files in a store; all their names there start with `kind` and a slash."""

    def __init__(self, store: Store, kind: str) -> None:
        self._store = store
        self._start = f"{kind}/" if kind else ""
        self.place = f"{store.place}/{kind}" if kind else store.place

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        with TemporaryDirectory(prefix="attakit-") as folder:
            path = Path(folder, name)
            yield path
            self._store.put(self._start + name, path.read_bytes())

    @contextmanager
    def reading(self, name: str) -> Iterator[Path]:
        content = self._store.get(self._start + name)
        with TemporaryDirectory(prefix="attakit-") as folder:
            path = Path(folder, name)
            if content is not None:
                path.write_bytes(content)
            yield path

    def names(self, pattern: str = "*") -> list[str]:
        found = (name.removeprefix(self._start) for name in self._store.names(self._start))
        return sorted(name for name in found if fnmatchcase(name, pattern))

    def remove(self, name: str) -> None:
        self._store.remove(self._start + name)

    def remove_drafts(self, pattern: str) -> None:
        """Do nothing: contents are written as a whole, so there are no drafts."""


def open_blobs(settings: ServiceSettings, storage: Storage, kind: str) -> Blobs:
    """Return the files of one kind (versions, checkpoints) of a service, in the place it uses.

    Files with the kind "" belong to the service as a whole.
    """
    if settings.files is None:
        return FolderBlobs(settings.folder / kind)
    if settings.files == IN_DATABASE:
        return StoredBlobs(storage.blobs, kind)
    return StoredBlobs(ObjectStore(settings.files), kind)


def check_blobs(settings: ServiceSettings, storage: Storage) -> None:
    """Raise an error if the settings name no place for files that this service can use."""
    if settings.files == IN_DATABASE and not storage.is_shared:
        raise SettingError(
            "files: 'database' needs PostgreSQL, got a service on SQLite, which stores files in "
            "its folder. Leave `files` out, or set `database` to a PostgreSQL URL."
        )
    if settings.files not in (None, IN_DATABASE):
        ObjectStore(str(settings.files))
