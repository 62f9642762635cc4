"""Files for the eyes of the service's own user: they hold images, answers and the key of sessions.

Windows has no such modes; there everything is made as usual.
"""

from __future__ import annotations

import os
from pathlib import Path

_HAS_MODES = os.name == "posix"
_FOLDER = 0o700 if _HAS_MODES else 0o777
_FILE = 0o600 if _HAS_MODES else 0o666
_OTHERS = 0o077


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
