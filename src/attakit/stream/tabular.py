"""Rows of a table as vectors: standardised numbers, and one column per category."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from attakit.errors import StreamError
from attakit.stream.row_files import RowFile, as_text, is_missing

MissingPolicy = Literal["refuse", "fill"]
MOST_CATEGORIES = 50  # a column with more values is probably a name, not a category


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers, with the mean and deviation of the source."""

    name: str
    mean: float
    deviation: float
    width: int = 1

    def encode(self, rows: RowFile, positions: Sequence[int]) -> NDArray[np.float32]:
        values = np.array([_number(rows, self.name, position) for position in positions])
        scaled = (values - self.mean) / self.deviation
        return np.nan_to_num(scaled, nan=0.0).astype(np.float32)[:, None]


@dataclass(frozen=True)
class CategoryColumn:
    """A column of categories of the source. Another value is none of them."""

    name: str
    values: tuple[str, ...]

    @property
    def width(self) -> int:
        return len(self.values)

    def encode(self, rows: RowFile, positions: Sequence[int]) -> NDArray[np.float32]:
        places = {value: place for place, value in enumerate(self.values)}
        encoded = np.zeros((len(positions), self.width), dtype=np.float32)
        cells = rows.column(self.name)
        for row, position in enumerate(positions):
            place = places.get(as_text(cells[position]))
            if place is not None:
                encoded[row, place] = 1
        return encoded


@dataclass(frozen=True)
class TableEncoder:
    """Turns rows into vectors, with what was learned from source rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> rows = RowFile(Path("a.csv"), {"age": ["1", "3", "5"], "kind": ["cat", "dog", "fox"]})
    >>> encoder = fit_encoder(rows, ["age", "kind"], source=[0, 1])
    >>> encoder.encode(rows, [0, 2]).tolist()
    [[-1.0, 1.0, 0.0], [3.0, 0.0, 0.0]]
    """

    columns: tuple[NumberColumn | CategoryColumn, ...]

    def encode(self, rows: RowFile, positions: Sequence[int]) -> NDArray[np.float32]:
        return np.concatenate([one.encode(rows, positions) for one in self.columns], axis=1)


def fit_encoder(rows: RowFile, columns: Sequence[str], source: Sequence[int]) -> TableEncoder:
    """Learn means, deviations and categories from the source rows only.

    A column is numeric if all its source values are numbers.
    """
    if not columns:
        raise StreamError(
            f"{rows.path} has no column that could be a feature. Add one to the file."
        )
    return TableEncoder(tuple(_fit_column(rows, name, source) for name in columns))


def check_complete(
    rows: RowFile, columns: Sequence[str], positions: Sequence[int], missing: MissingPolicy
) -> None:
    """Raise `StreamError` if a required value is missing."""
    if missing == "fill":
        return
    for name in columns:
        cells = rows.column(name)
        bad = [position for position in positions if is_missing(cells[position])]
        if bad:
            raise StreamError(
                f"{rows.path}: {name} has no value in {len(bad):,} rows, first in row "
                f"{bad[0] + 1}. Repair them, remove the column from features, or set missing = "
                f'"fill". Then numbers become the mean of the source, and texts get no category.'
            )


def _fit_column(rows: RowFile, name: str, source: Sequence[int]) -> NumberColumn | CategoryColumn:
    cells = rows.column(name)
    known = [cells[position] for position in source if not is_missing(cells[position])]
    if not known:
        raise StreamError(
            f"{rows.path}: {name} has no value in any row of the source. Leave it out of features."
        )
    numbers = list(_numbers(known))
    if len(numbers) == len(known):
        deviation = float(np.std(numbers))
        # A column that is constant on the source has no scale.
        return NumberColumn(name, float(np.mean(numbers)), deviation if deviation > 0 else 1.0)
    values = tuple(sorted({as_text(cell) for cell in known}))
    if len(values) > MOST_CATEGORIES:
        raise StreamError(
            f"{rows.path}: {name} has {len(values):,} different texts in the source, and at most "
            f"{MOST_CATEGORIES} can be categories. Leave it out of features."
        )
    return CategoryColumn(name, values)


def _numbers(cells: Sequence[Any]) -> Iterator[float]:
    for cell in cells:
        try:
            value = float(cell)
        except (TypeError, ValueError):
            return
        if not math.isfinite(value):
            return
        yield value


def _number(rows: RowFile, name: str, position: int) -> float:
    cell = rows.column(name)[position]
    if is_missing(cell):
        return math.nan
    found = list(_numbers([cell]))
    if not found:
        raise StreamError(
            f"{rows.where(position)}: {name} must be a finite number, as it is in the source, got "
            f"{as_text(cell)!r}."
        )
    return found[0]
