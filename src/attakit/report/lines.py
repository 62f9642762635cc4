"""Files of JSON lines: written with flush, read with checks, truncated when a run resumes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attakit.errors import StateError
from attakit.files import atomic_write

_FORMAT = 1


def as_json(value: Any) -> str:
    """Write a value as one line of strict JSON; numbers that are not finite become null.

    >>> as_json({"loss": float("nan"), "steps": (1, 2)})
    '{"loss": null, "steps": [1, 2]}'
    """
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_finite(item) for item in value]
    if value is None or isinstance(value, str | int):
        return value
    return _finite(value.item()) if hasattr(value, "item") else str(value)


class LineFile:
    """Appends JSON objects to a file, one per line.

    The file is opened and closed for each line. So written lines reach the system at once, and an
    aborted run leaves nothing open.

    Parameters
    ----------
    path
        The file. A missing folder is created.
    kind, first
        Kind and content of the first line of a new file.
    resume_after
        None starts a new file. A step number keeps the lines up to it. Later lines, the end line
        and a torn last line are removed.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp()) / "steps.jsonl"
    >>> lines = LineFile(path, "run", {})
    >>> lines.write({"kind": "step", "step": 0})
    >>> [line["kind"] for _, line in read_json_lines(path, "run")]
    ['run', 'step']
    """

    def __init__(
        self, path: Path, kind: str, first: Mapping[str, Any], *, resume_after: int | None = None
    ) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume_after is None:
            self.kept: list[dict[str, Any]] = []
        else:
            self.kept = _cut_after(path, kind, resume_after)
        self._path = path
        if not self.kept:
            path.write_bytes(b"")
            self.write({"kind": kind, "format": _FORMAT, **first})

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line."""
        with self._path.open("ab") as file:
            file.write(as_json(line).encode() + b"\n")


def read_json_lines(path: Path, kind: str) -> list[tuple[int, dict[str, Any]]]:
    """Read a file of JSON lines with their numbers, without a torn last line.

    Its first line must be of the given kind.
    """
    try:
        raw = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StateError(
            f"{path}: cannot be read ({error.strerror}). Give the folder of a run."
        ) from error
    filled = [(number, text) for number, text in enumerate(raw, 1) if text.strip()]
    lines = [(number, _parse(text)) for number, text in filled]
    if len(lines) > 1 and lines[-1][1] is None:
        lines.pop()
    return _checked(path, kind, lines)


def _parse(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and isinstance(line.get("kind"), str) else None


def _checked(
    path: Path, kind: str, lines: Iterable[tuple[int, dict[str, Any] | None]]
) -> list[tuple[int, dict[str, Any]]]:
    checked: list[tuple[int, dict[str, Any]]] = []
    for number, line in lines:
        if line is None:
            raise StateError(
                f"{path}, line {number}: not a JSON object with a 'kind'. "
                f"The file is damaged or was not written by attakit. Run the experiment again."
            )
        checked.append((number, line))
    if not checked:
        raise StateError(f"{path}: the file is empty. Run the experiment again.")
    number, first = checked[0]
    if first["kind"] != kind:
        raise StateError(
            f"{path}, line {number}: the file must begin with a line of kind {kind!r}, "
            f"got {first['kind']!r}. It was not written by attakit or its beginning is lost."
        )
    if first.get("format") != _FORMAT:
        raise StateError(
            f"{path}: written in format {first.get('format')!r}; this version reads format "
            f"{_FORMAT}. Run the experiment again, or read it with the version that wrote it."
        )
    return checked


def _cut_after(path: Path, kind: str, step: int) -> list[dict[str, Any]]:
    """Remove lines after a step; return the remaining ones."""
    if not path.exists() and step < 0:
        return []
    lines = [line for _, line in read_json_lines(path, kind)]
    kept = [line for line in lines if line["kind"] != "end" and line.get("step", -1) <= step]
    with atomic_write(path) as draft:
        draft.write_bytes(b"".join(as_json(line).encode() + b"\n" for line in kept))
    return kept
