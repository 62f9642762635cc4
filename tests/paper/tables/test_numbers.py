"""The paper's numbers: what it prints twice must agree, and its averages must come out."""

from __future__ import annotations

import statistics

import pytest

from attakit.errors import UnknownName
from attakit.paper import LAYOUTS, paper_number
from attakit.paper.tables.numbers import find_table, paper_tables
from attakit.report import PaperNumber

HALF_A_DIGIT = 0.005 + 1e-9
COMPARISONS = ["table-2-pacs", "table-2-vlcs", "table-6"]


def value(table, row, column):
    return table.number(row, column).value


@pytest.mark.parametrize(
    ("table", "method", "column", "printed"),
    [
        ("table-2-pacs", "Tent (steps=10)", "domain-wise/S", 20.23),
        ("table-2-vlcs", "SimATTA (B ≤ 500)", "random/after/V", 80.18),
        ("table-3", "SimATTA (step=10)", "seconds", 736.28),
        ("table-3", "CoTTA", "Contr", 4.17),
        ("table-5", "CoTTA", "domain-wise/after/P", 90.12),
        ("table-6", "EATA", "random/4", 51.07),
        ("table-15", "labels", "random/4", 425),
        ("table-31", "C", "domain-wise/A", 46.41),
        ("table-1", "High entropy", "fine-tune/target", 0.7725),
    ],
)
def test_numbers_are_found_under_table_method_and_column(table, method, column, printed):
    assert paper_number(table, method, column) == PaperNumber(printed)


def test_a_deviation_comes_with_its_mean():
    assert paper_number("table-4-vlcs", "CLUE (B = 300)", "C") == PaperNumber(85.70, 10.09)


def test_what_the_paper_does_not_print_is_none():
    assert paper_number("table-2-pacs", "EATA", "domain-wise/P") is None  # N/A
    assert paper_number("table-2-pacs", "Mine", "domain-wise/A") is None
    assert paper_number("table-2-pacs", "EATA", "sideways/A") is None


def test_an_unknown_table_is_refused():
    with pytest.raises(UnknownName, match="table-2-pacs"):
        paper_number("table-2-pac", "EATA", "domain-wise/A")


@pytest.mark.parametrize("name", paper_tables())
def test_every_row_has_a_number_per_column(name):
    table = paper_tables()[name]

    assert table.rows
    assert {len(row) for row in table.rows.values()} == {len(table.columns)}
    assert table.layout in {*LAYOUTS, "none"}


@pytest.mark.parametrize("row", paper_tables()["table-3"].rows)
def test_printed_averages_come_out(row):
    table = paper_tables()["table-3"]
    corruptions = [value(table, row, name) for name in table.domains]

    assert len(corruptions) == 14
    assert statistics.fmean(corruptions) == pytest.approx(
        value(table, row, "average"), abs=HALF_A_DIGIT
    )


@pytest.mark.parametrize("name", ["table-4-pacs", "table-4-vlcs", "table-7"])
def test_simatta_among_ada_methods_is_the_mean_of_its_two_streams(name):
    table = paper_tables()[name]
    streams = find_table("tta", table.data_set)
    row = "SimATTA (B ≤ 300)"

    for domain in table.domains:
        printed = table.number(row, domain)
        both = [value(streams, row, f"{s}/after/{domain}") for s in ("domain-wise", "random")]
        assert printed.value == pytest.approx(statistics.fmean(both), abs=HALF_A_DIGIT)
        assert printed.deviation == pytest.approx(statistics.pstdev(both), abs=HALF_A_DIGIT)


@pytest.mark.parametrize("name", COMPARISONS)
def test_complete_tables_end_where_the_comparisons_do(name):
    table = paper_tables()[name]
    letters = list(table.domains)
    now = [f"domain-wise/{letter}" for letter in letters[1:]] + [f"random/{n}" for n in "1234"]
    found = 0
    for row in table.rows:
        complete = find_table("complete", table.data_set, row)
        if complete is None:  # no adaptation, so nothing happens along the stream
            assert row.startswith("BN")
            continue
        found += 1
        for column in now:
            assert value(complete, "current", column) == value(table, row, column)
        for letter in letters:
            for stream, last in (("domain-wise", letters[-1]), ("random", "4")):
                after = value(table, row, f"{stream}/after/{letter}")
                assert value(complete, letter, f"{stream}/{last}") == after
    assert found == 8


@pytest.mark.parametrize("name", COMPARISONS)
def test_used_labels_are_those_of_the_complete_tables(name):
    table = paper_tables()[name]

    assert set(table.labels) == {"SimATTA (B ≤ 300)", "SimATTA (B ≤ 500)"}
    for row, counts in table.labels.items():
        complete = find_table("complete", table.data_set, row)
        last = list(table.domains)[-1]
        printed = [value(complete, "labels", c) for c in (f"domain-wise/{last}", "random/4")]
        assert printed == list(counts)


def test_the_known_contradictions_are_transcribed_as_printed():
    for name, row, told in [
        ("table-6", "BN w/o adapt", (93.78, 42.93, 37.62, 59.90)),
        ("table-2-vlcs", "BN w/o adapt", (100.00, 33.55, 41.10, 49.05)),
    ]:
        table = paper_tables()[name]
        assert tuple(value(table, row, f"domain-wise/{d}") for d in table.domains) == told
    for number in range(24, 32):
        table = paper_tables()[f"table-{number}"]
        before = tuple(value(table, d, "domain-wise/R") for d in table.domains)
        assert before == (96.44, 57.07, 44.97, 73.15)
    for number in range(16, 24):
        assert paper_number(f"table-{number}", "V", "domain-wise/C") == PaperNumber(49.08)


def test_methods_without_labels_have_no_budgets_in_their_complete_tables():
    assert paper_number("table-8", "labels", "random/4") is None


def test_spelling_does_not_matter():
    table = paper_tables()["table-3"]

    assert table.row_name("tent (steps=1)") == "Tent (step=1)"
    assert paper_tables()["table-4-pacs"].row_name("K-means", 300) == "Kmeans (B = 300)"
    assert find_table("tta", "Office-Home").name == "table-6"
    assert paper_tables()["table-6"].letter("Real_World") == "R"
    assert find_table("tta", "digits") is None
