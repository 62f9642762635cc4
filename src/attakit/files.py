"""Files that a crash leaves whole, and files that only their own user may read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

# Windows has no such modes; there everything is made as usual.
_HAS_MODES = os.name == "posix"
_FOLDER = 0o700 if _HAS_MODES else 0o777
_FILE = 0o600 if _HAS_MODES else 0o666
_OTHERS = 0o077


@contextmanager
def atomic_write(path: Path, *, sync: bool = False) -> Iterator[Path]:
    """Inside, write to the path that is given; when the block ends, that file replaces `path`.

    If the block or the replacement fails, the old file stays and the new one is removed.

    Parameters
    ----------
    path
        The file to write; its folder is made if it is missing.
    sync
        Wait until the file and its name would survive a loss of power.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "page.html")) as draft:
    ...         _ = draft.write_text("whole")
    ...     Path(folder, "page.html").read_text()
    'whole'
    """
    # Hidden, so that nobody takes what a crash leaves behind for a result. With the same ending,
    # since some libraries choose the format by it.
    draft = path.with_name(f".{path.name}.{uuid4().hex}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        if sync:
            _sync(draft)
        os.replace(draft, path)
        if sync and os.name == "posix":  # elsewhere a folder cannot be opened
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
    """Make a folder that nobody else may enter; one that is there stays as it is."""
    folder.mkdir(_FOLDER, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make an empty file that nobody else may read; one that is there stays as it is."""
    os.close(_open_private(str(path), os.O_CREAT | os.O_WRONLY))


def write_private_text(path: Path, text: str) -> None:
    """Write a file that nobody else may read."""
    with open(path, "w", encoding="utf-8", opener=_open_private) as file:
        file.write(text)


def is_shared(path: Path) -> bool:
    """Whether the mode of a file or folder lets other users of the machine in."""
    return _HAS_MODES and bool(path.stat().st_mode & _OTHERS)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _FILE)
