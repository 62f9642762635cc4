"""Blobs: where the weights and checkpoints of a service are, on one machine or for many.

The service writes and reads them as local files. In a folder these are the files themselves. A
store that several machines reach (a table of the database, or an object store through fsspec) gets
and gives copies of them.
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
    """Whole files by name. `place` is what messages call the place they are in."""

    place: str

    def writing(self, name: str) -> AbstractContextManager[Path]:
        """Inside, write a file to the path that is given; afterwards it is kept under the name."""

    def reading(self, name: str) -> AbstractContextManager[Path]:
        """Inside, read the file from the path that is given; it is missing there if it is lost."""

    def names(self, pattern: str = "*") -> list[str]:
        """The names that match a pattern, sorted."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def remove_drafts(self, pattern: str) -> None:
        """Remove what a process that was killed left of files whose names match a pattern."""


class Store(Protocol):
    """Contents by name, in a place that all machines reach. A name never shows half a content."""

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
        yield self.folder / name  # the functions that save weights and states replace it as a whole

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
        """There are none: a content is put as a whole."""


def open_blobs(settings: ServiceSettings, storage: Storage, kind: str) -> Blobs:
    """The files of one kind (versions, checkpoints) of a service, where its settings say.

    Those of no kind ("") belong to the service as a whole.
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
            "files: 'database' is for PostgreSQL, got a service on SQLite, whose folder has room "
            "for files. Leave `files` out, or set `database` to a PostgreSQL URL."
        )
    if settings.files not in (None, IN_DATABASE):
        ObjectStore(str(settings.files))
