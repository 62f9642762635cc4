"""Group rows of a file by domain: the values of a column, or periods of time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from attakit.errors import SettingError, StreamError
from attakit.stream.row_files import RowFile, as_text, is_missing

Calendar = Literal["year", "month", "day"]
Positions = dict[str, list[int]]  # row positions of each domain

_CALENDAR = {"year": 4, "month": 7, "day": 10}  # characters of an ISO date that identify the period


def rows_by_value(rows: RowFile, column: str) -> Positions:
    """Group rows by the value of a column, domains in order of appearance.

    >>> from pathlib import Path
    >>> rows_by_value(RowFile(Path("a.csv"), {"site": ["north", "south", "north"]}), "site")
    {'north': [0, 2], 'south': [1]}
    """
    found: Positions = {}
    for position, cell in enumerate(rows.column(column)):
        if is_missing(cell):
            raise StreamError(
                f"{rows.where(position)} has no domain: {column} is empty. Fill it in, or remove "
                "the row."
            )
        found.setdefault(as_text(cell), []).append(position)
    return found


def rows_by_period(rows: RowFile, column: str, periods: int | Calendar) -> Positions:
    """Group rows by period of time, earliest first.

    A number cuts the rows, sorted by time, into this many periods of about equal size. Rows with
    the same time stay together. "year", "month" and "day" follow the calendar.

    >>> from pathlib import Path
    >>> rows = RowFile(Path("a.csv"), {"day": ["2024-03-01", "2023-12-30", "2024-03-02"]})
    >>> rows_by_period(rows, "day", "year")
    {'2023': [1], '2024': [0, 2]}
    >>> rows_by_period(rows, "day", 2)
    {'period 1': [0, 1], 'period 2': [2]}
    """
    times = [_time(rows, position, cell) for position, cell in enumerate(rows.column(column))]
    if len({type(time) for time in times}) > 1:
        raise StreamError(f"{rows.path}: {column} mixes numbers and dates. Use one of them.")
    order = sorted(range(len(times)), key=lambda position: times[position])
    if isinstance(periods, str):
        return _by_calendar(times, order, periods, column)
    return _by_count(times, order, periods, column)


def _by_calendar(times: Sequence[Any], order: Sequence[int], unit: Calendar, who: str) -> Positions:
    if not isinstance(times[0], datetime):
        raise SettingError(
            f'periods = "{unit}" needs dates such as 2024-03-01, but {who} holds numbers. Give a '
            f"number of periods instead."
        )
    found: Positions = {}
    for position in order:
        found.setdefault(times[position].isoformat()[: _CALENDAR[unit]], []).append(position)
    return {name: sorted(positions) for name, positions in found.items()}


def _by_count(times: Sequence[Any], order: Sequence[int], count: int, who: str) -> Positions:
    distinct = len(set(times))
    if not 2 <= count <= distinct:
        raise SettingError(
            f"periods must be from 2 to {distinct}, the number of different values of {who}, got "
            f"{count}."
        )
    found: list[list[int]] = [[]]
    for place, position in enumerate(order):
        is_new_time = place > 0 and times[position] != times[order[place - 1]]
        is_full = place >= len(found) * len(order) / count
        if found[-1] and is_new_time and is_full and len(found) < count:
            found.append([])
        found[-1].append(position)
    return {f"period {number}": sorted(rows) for number, rows in enumerate(found, start=1)}


def _time(rows: RowFile, position: int, cell: Any) -> float | datetime:
    text = str(cell) if isinstance(cell, float) else as_text(cell)
    for read in (float, datetime.fromisoformat):
        try:
            found: float | datetime = read(text)
        except ValueError:
            continue
        if found == found:  # NaN has no place in time
            return found.replace(tzinfo=None) if isinstance(found, datetime) else found
    raise StreamError(
        f"{rows.where(position)} has no time: expected a number or a date such as 2024-03-01, got "
        f"{text!r}."
    )
