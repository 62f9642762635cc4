"""Files with one sample per row: CSV, TSV, JSON lines and Parquet."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attakit.errors import StreamError, needs_extra, unknown_name

PARQUET_EXTRA = "parquet"

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = frozenset({".jsonl", ".ndjson"})


@dataclass(frozen=True)
class RowFile:
    """The columns of a file. A cell is text in CSV, and may be a number or a list in other formats.

    Examples
    --------
    >>> rows = RowFile(Path("animals.csv"), {"weight": ["3.1", "NA"], "kind": ["cat", "dog"]})
    >>> len(rows), rows.row(0), is_missing(rows.column("weight")[1])
    (2, {'weight': '3.1', 'kind': 'cat'}, True)
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> Sequence[Any]:
        """Return a column by name; raises if there is none."""
        if name not in self.columns:
            raise unknown_name(f"column of {self.path}", name, self.columns)
        return self.columns[name]

    def row(self, position: int) -> dict[str, str]:
        """Return one row as text for people."""
        return {name: as_text(cells[position]) for name, cells in self.columns.items()}

    def where(self, position: int) -> str:
        """Describe a row by its number: the first row of data is row 1."""
        return f"row {position + 1} of {self.path}"


def read_row_file(path: Path) -> RowFile:
    """Read a file by its extension: .csv, .tsv, .jsonl, .ndjson or .parquet."""
    if not path.is_file():
        raise StreamError(f"There is no file {path}. Set file to the file with the rows.")
    kind = path.suffix.lower()
    try:
        if kind in _DELIMITERS:
            columns = _read_csv(path, _DELIMITERS[kind])
        elif kind in _JSON_LINES:
            columns = _read_json_lines(path)
        elif kind == ".parquet":
            columns = _read_parquet(path)
        else:
            known = ", ".join((*_DELIMITERS, *sorted(_JSON_LINES), ".parquet"))
            raise StreamError(
                f"{path} has the extension {kind!r}. Convert it to a known one: {known}."
            )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StreamError(f"{path} cannot be read: {error}.") from error
    if not columns or not next(iter(columns.values())):
        raise StreamError(f"{path} holds no rows. Add some, or name another file.")
    return RowFile(path, columns)


def _read_csv(path: Path, delimiter: str) -> dict[str, list[Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, delimiter=delimiter, strict=True)
        names = next(lines, [])
        if len(set(names)) < len(names):
            raise StreamError(f"{path}: the names in its first line must differ, got {names}.")
        rows = [_checked(path, lines.line_num, row, names) for row in lines if row]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _checked(path: Path, line: int, row: list[str], names: Sequence[str]) -> list[str]:
    if len(row) != len(names):
        raise StreamError(
            f"{path}, line {line}: there are {len(row)} values for {len(names)} columns. The first "
            "line names the columns. Put texts that contain the delimiter in quotes."
        )
    return row


def _read_json_lines(path: Path) -> dict[str, list[Any]]:
    rows = list(_json_objects(path))
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _json_objects(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise StreamError(
                f"{path}, line {number} is not JSON: {error}. Fix the line, or remove it."
            ) from error
        if not isinstance(found, dict):
            raise StreamError(
                f"{path}, line {number} must be a JSON object with a key per column, got "
                f"{line[:40]!r}."
            )
        yield found


def _read_parquet(path: Path) -> dict[str, list[Any]]:
    with needs_extra("Reading Parquet", PARQUET_EXTRA):
        parquet = importlib.import_module("pyarrow.parquet")
    try:
        return dict(parquet.read_table(path).to_pydict())
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise StreamError(f"{path} is not a Parquet file: {error}. Save it again.") from error


def is_missing(cell: object) -> bool:
    """True if a cell has no value: empty, or one of NA, N/A, NaN, null and None.

    >>> [is_missing(cell) for cell in ("", "NA", None, float("nan"), "0", 0)]
    [True, True, True, True, False, False]
    """
    return cell is None or str(cell).strip().lower() in _MISSING


def as_text(cell: object) -> str:
    """Return a cell as text for people; empty if it has no value.

    >>> as_text(0.39799999999999996), as_text(" cat "), as_text(None)
    ('0.398', 'cat', '')
    """
    if isinstance(cell, float):
        return f"{cell:.10g}"
    return "" if cell is None else str(cell).strip()
