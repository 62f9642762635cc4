import math

import pytest

from attakit.errors import SettingError
from attakit.report.leaderboard import Ranking, leaderboard_tables, rank_methods, ranking_of
from attakit.report.rank_plot import cliques, draw_ranks


def test_ties_share_their_ranks():
    ranking = rank_methods([{"a": 5.0, "b": 5.0, "c": 1.0}])
    assert ranking.ranks == {"a": 1.5, "b": 1.5, "c": 3.0}


def test_the_critical_difference_is_that_of_nemenyi():
    """q is 2.343 for three methods (Demšar, 2006, table 5a)."""
    ranking = Ranking({"a": 1.0, "b": 2.0, "c": 3.0}, contests=10)
    assert ranking.critical_difference == pytest.approx(2.343 * math.sqrt(3 * 4 / 60), abs=2e-3)


def test_a_method_that_lacks_a_stream_has_no_rank():
    ranking = rank_methods([{"a": 5.0, "b": 4.0, "c": 9.0}, {"a": 5.0, "b": 4.0}])
    assert list(ranking.ranks) == ["a", "b"]
    assert ranking.missing == ("c",)


def test_one_method_cannot_be_ranked():
    with pytest.raises(SettingError, match="at least two of them, got 1"):
        rank_methods([{"a": 5.0}])


def test_streams_count_the_same_however_many_seeds_they_have(make_suite_run):
    runs = [
        *(make_suite_run("Tent", seed=seed, base=70.0) for seed in range(3)),
        *(make_suite_run("SimATTA", seed=seed, base=60.0) for seed in range(3)),
        make_suite_run("Tent", order="random", base=60.0),
        make_suite_run("SimATTA", order="random", base=70.0),
    ]
    assert ranking_of(runs).ranks == {"Tent": 1.5, "SimATTA": 1.5}


def test_the_tables_are_the_ranking_and_one_per_stream(make_comparison):
    overall, *streams = leaderboard_tables(make_comparison())
    assert [row.label for row in overall.rows] == [
        "SimATTA (B ≤ 500)",
        "SimATTA (B ≤ 300)",
        "Tent (steps=1)",
    ]
    assert overall.write(overall.rows[-1].cells[0]) == "3.00"
    assert [table.title for table in streams] == [
        "pacs, domain-wise stream",
        "pacs, random stream",
    ]
    # t(1) is 12.706, and the two seeds are one point apart.
    assert streams[0].write(streams[0].rows[-1].cells[0]) == "61.5 ± 6.4"


def test_groups_of_neighbours_are_joined_once():
    ranking = Ranking({"a": 1.0, "b": 1.2, "c": 1.9, "d": 4.0}, contests=20)
    assert ranking.critical_difference == pytest.approx(1.05, abs=0.01)
    assert cliques(ranking) == [(1.0, 1.9)]


def test_the_diagram_is_the_same_for_the_same_ranking(tmp_path):
    ranking = rank_methods([{"a": 5.0, "b": 4.0, "c": 9.0}, {"a": 5.0, "b": 4.0, "c": 3.0}])
    for name in ("one.svg", "two.svg"):
        draw_ranks(ranking, tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("one.svg", "two.svg"))
    assert first == second
    assert b"<svg" in first
