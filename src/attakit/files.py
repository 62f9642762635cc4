"""Write files so that a crash leaves the old content or the new, never half of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


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
