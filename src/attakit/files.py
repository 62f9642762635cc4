"""Atomic file writes, and files that only their owner may read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

# Windows has no such modes, so files there get the usual ones.
_HAS_MODES = os.name == "posix"
_FOLDER = 0o700 if _HAS_MODES else 0o777
_FILE = 0o600 if _HAS_MODES else 0o666
_OTHERS = 0o077


@contextmanager
def atomic_write(path: Path, *, sync: bool = False) -> Iterator[Path]:
    """Write to the path that the block receives; at the end of the block that file replaces `path`.

    If the block or the replacement fails, the old file stays and the new one is removed.

    Parameters
    ----------
    path
        The file to write. A missing folder is created.
    sync
        Wait until the file and its name would survive a power cut.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "page.html")) as draft:
    ...         _ = draft.write_text("whole")
    ...     Path(folder, "page.html").read_text()
    'whole'
    """
    # Hidden, so that a file left by a crash is not mistaken for a result. It keeps the ending,
    # because some libraries choose the format by it.
    draft = path.with_name(f".{path.name}.{uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        if sync:
            _sync(draft)
        os.replace(draft, path)
        if sync and os.name == "posix":  # other systems cannot open a folder
            _sync(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink()


def _sync(path: Path) -> None:
    writable = os.O_RDONLY if path.is_dir() else os.O_RDWR
    handle = os.open(path, writable)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_private_folder(folder: Path) -> None:
    """Create a folder that other users cannot enter. An existing one stays as it is."""
    folder.mkdir(_FOLDER, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Create an empty file that other users cannot read. An existing one stays as it is."""
    os.close(_open_private(str(path), os.O_CREAT | os.O_WRONLY))


def write_private_text(path: Path, text: str) -> None:
    """Write a file that other users cannot read."""
    with open(path, "w", encoding="utf-8", opener=_open_private) as file:
        file.write(text)


def is_shared(path: Path) -> bool:
    """True if other users of the machine may open a file or folder."""
    return _HAS_MODES and bool(path.stat().st_mode & _OTHERS)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE)
