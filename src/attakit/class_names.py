"""Compare class names the way files do."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path


def plain_name(name: str) -> str:
    """Normalise a name for searching files: no surrounding spaces, accents in one form.

    Spreadsheets drop such spaces, and some programs write letters with accents in two parts.

    >>> plain_name(" cat ")
    'cat'
    """
    return unicodedata.normalize("NFC", name.strip())


def class_files(folder: Path, name: str) -> list[Path]:
    """Return the files in the subfolder of a class, sorted by name; none if it does not exist."""
    wanted = plain_name(name)
    places = [one for one in folder.iterdir() if one.is_dir() and plain_name(one.name) == wanted]
    files = [file for place in places for file in place.iterdir() if file.is_file()]
    return sorted(file for file in files if not file.name.startswith("."))


def same_names(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two names that files cannot distinguish, or None if all are different.

    >>> same_names(["cat", "dog", "cat "])
    ('cat', 'cat ')
    """
    seen: dict[str, str] = {}
    for name in names:
        if plain_name(name) in seen:
            return seen[plain_name(name)], name
        seen[plain_name(name)] = name
    return None
