from pathlib import Path

import pytest

from attakit.errors import SettingError, StreamError
from attakit.stream.row_domains import rows_by_period, rows_by_value
from attakit.stream.row_files import RowFile


def rows(**columns):
    return RowFile(Path("rows.csv"), columns)


def test_domains_come_in_the_order_of_the_file():
    assert list(rows_by_value(rows(site=["b", "a", "b", "c"]), "site")) == ["b", "a", "c"]


def test_a_row_without_a_domain_is_named():
    with pytest.raises(StreamError, match=r"row 2 of rows\.csv has no domain"):
        rows_by_value(rows(site=["a", " "]), "site")


def test_periods_hold_about_as_many_rows_each_and_never_split_a_moment():
    found = rows_by_period(rows(t=["5", "1", "1", "1", "2", "3", "4", "6"]), "t", 3)
    assert found == {"period 1": [1, 2, 3], "period 2": [4, 5, 6], "period 3": [0, 7]}


@pytest.mark.parametrize(
    ("unit", "names"), [("year", ["2023", "2024"]), ("month", ["2023-12", "2024-01"])]
)
def test_the_calendar_names_its_periods(unit, names):
    times = ["2024-01-02T10:00:00", "2023-12-31", "2024-01-30"]
    assert list(rows_by_period(rows(t=times), "t", unit)) == names


@pytest.mark.parametrize(
    ("times", "periods", "error", "message"),
    [
        (["1", "2"], 3, SettingError, "periods must be from 2 to 2"),
        (["1", "2"], "year", SettingError, "needs dates such as 2024-03-01"),
        (["1", "soon"], 2, StreamError, "row 2 of rows.csv has no time"),
        (["1", "nan"], 2, StreamError, "row 2 of rows.csv has no time"),
        (["1", "2024-01-01"], 2, StreamError, "mixes numbers and dates"),
    ],
)
def test_what_is_no_time_is_refused(times, periods, error, message):
    with pytest.raises(error, match=message):
        rows_by_period(rows(t=times), "t", periods)
