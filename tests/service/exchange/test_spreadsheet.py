import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attakit.errors import LabelError
from attakit.service.exchange.spreadsheet import COLUMNS, escape_cell, unescape_cell

FORMULAS = ("=", "+", "-", "@", "\t", "\r")


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def fill_in(text, answers, **more):
    """What a person does in a spreadsheet: type into the last column."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, **more)
    writer.writeheader()
    for row, answer in zip(rows_of(text), answers, strict=True):
        writer.writerow({**row, "answer": answer})
    return out.getvalue()


def test_a_table_has_one_row_per_open_question_the_oldest_first(exported):
    rows = rows_of(exported("csv"))

    assert [row["question"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["guess"] == "cat"
    assert (rows[0]["version"], rows[0]["entropy"], rows[0]["probability"]) == ("7", "0.9", "0.6")
    assert rows[0]["asked_at"] == "1970-01-12T13:46:40+00:00"
    assert rows[0]["answer"] == ""


def test_no_cell_begins_like_a_formula(exported, imported):
    imported("csv", "question,answer,annotator\n1,=SUM(1),=cmd\n2,cat,-1+1\n")

    cells = [cell for row in rows_of(exported("csv", everything=True)) for cell in row.values()]

    assert not [cell for cell in cells if cell.startswith(FORMULAS)]
    assert "'=SUM(1)" in cells
    assert "'=cmd" in cells


@given(st.text(max_size=20))
def test_escaping_can_be_undone_and_leaves_no_formula(text):
    assert unescape_cell(escape_cell(text)) == text
    assert not escape_cell(text).lstrip().startswith(FORMULAS)


def test_a_table_that_is_filled_in_comes_back(exported, imported, said):
    report = imported("csv", fill_in(exported("csv"), ["'=SUM(1)", "", "三毛猫"]))

    assert (report.taken, report.blank, report.problems) == (2, 1, ())
    assert [said(1), said(2), said(3)] == [[("ada", "label", 2)], [], [("ada", "label", 3)]]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_spreadsheets_of_other_countries_are_understood(exported, imported, said, delimiter):
    table = fill_in(exported("csv"), ["größer; Hund", "", ""], delimiter=delimiter)

    assert imported("csv", "\ufeff" + table).taken == 1
    assert said(1) == [("ada", "label", 1)]


def test_two_columns_are_enough(imported, said):
    assert imported("csv", "Answer,Question\r\n3,1\r\n").taken == 1
    assert said(1) == [("ada", "label", 3)]


def test_kinds_and_people_can_be_given(imported, said):
    table = "question,answer,kind,annotator\n1,,skip,bob\n2,,none,\n3,cat,label,eve\n"

    assert imported("csv", table).taken == 3
    assert [said(1), said(2), said(3)] == [
        [("bob", "skip", None)],
        [("ada", "none", None)],
        [("eve", "label", 0)],
    ]


def test_a_table_without_the_columns_is_refused_as_a_whole(imported):
    with pytest.raises(LabelError, match=r"lacks answer, got 'question,class'"):
        imported("csv", "question,class\n1,cat\n")


def test_a_row_with_too_many_fields_is_refused_with_its_line(imported):
    report = imported("csv", "question,answer\n1,cat,dog\n2,cat\n")

    assert (report.taken, report.refused) == (1, 1)
    assert report.problems[0].line == 2
    assert "3 fields" in report.problems[0].reason


def test_a_huge_field_is_refused_and_the_rest_is_taken(imported, said):
    report = imported("csv", f"question,answer\n1,{'x' * 200_000}\n2,cat\n")

    assert (report.taken, report.refused) == (1, 1)
    assert len(report.problems[0].reason) < 200
    assert said(2) == [("ada", "label", 0)]


def test_lines_are_counted_as_an_editor_does(imported):
    report = imported("csv", 'question,sample,answer\n1,"two\nlines",cat\n\n9,s,cat\n')

    assert [problem.line for problem in report.problems] == [5]


@pytest.mark.parametrize(
    "text", ["", "\n", "\ufeff", "question,answer\n", "question,answer\n\n,\n"]
)
def test_an_empty_table_changes_nothing(imported, text):
    report = imported("csv", text)

    assert (report.taken, report.refused, report.unknown) == (0, 0, 0)
