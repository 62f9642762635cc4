"""ObjectStore: files in an object store (S3, GCS, Azure, …), through fsspec."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fsspec

from attakit.errors import MissingExtra, SettingError, StateError


class ObjectStore:
    """Contents by name below a URL such as s3://bucket/path.

    Credentials and the address of an S3-compatible server are set where the library looks for
    them: the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL for s3fs.

    Examples
    --------
    >>> store = ObjectStore("memory://example-of-a-store")
    >>> store.put("versions/a", b"weights")
    >>> store.get("versions/a"), store.get("versions/b"), store.names("versions/")
    (b'weights', None, ['versions/a'])
    """

    def __init__(self, url: str) -> None:
        self.place = url.rstrip("/")
        if "://" not in url:
            raise SettingError(
                f"files: must be 'database' or a URL like s3://bucket/path, got {url!r}. Leave it "
                f"out to keep files in the folder."
            )
        try:
            # Listings must not be cached: other machines write here too.
            system, root = fsspec.core.url_to_fs(self.place, use_listings_cache=False)
        except ImportError as error:
            raise MissingExtra(f"files: {self.place} needs another package: {error}") from None
        except ValueError as error:
            raise SettingError(
                f"files: {self.place} cannot be used: {error}. Check the URL."
            ) from None
        self._system: Any = system
        self._root = root.rstrip("/")

    def put(self, name: str, content: bytes) -> None:
        """Store a content under a name, and replace any old one."""
        path = self._path(name)
        with self._explained():
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, content)

    def get(self, name: str) -> bytes | None:
        """Return the content of a name; None if there is none."""
        with self._explained():
            try:
                return bytes(self._system.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def names(self, start: str) -> list[str]:
        """Return all names with this prefix, which ends with a slash."""
        with self._explained():
            try:
                found = self._system.ls(self._path(start.rstrip("/")), detail=True)
            except FileNotFoundError:
                return []
        files = [one["name"] for one in found if one["type"] == "file"]
        return [start + name.rpartition("/")[2] for name in files]

    def remove(self, name: str) -> None:
        """Remove a name, if it exists."""
        with self._explained():
            try:
                self._system.rm_file(self._path(name))
            except FileNotFoundError:
                return

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of object store libraries, which have their own types, into `StateError`."""
        try:
            yield
        except Exception as error:
            raise StateError(
                f"Files: {self.place} cannot be used ({type(error).__name__}: {error}). Check that "
                "it can be reached and that its credentials are right."
            ) from error
