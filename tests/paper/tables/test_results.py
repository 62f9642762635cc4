"""The tables of docs/results.md are those that the kept step lines give."""

from __future__ import annotations

from pathlib import Path

import pytest

from attakit.paper import lay_out
from attakit.report import compare, read_run, render_tables
from attakit.report.runs import find_runs

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def runs_in(*patterns):
    folders = [folder for pattern in patterns for folder in sorted(ROOT.glob(pattern))]
    return [read_run(folder) for folder in find_runs(folders)]


@pytest.mark.parametrize("stream", ["domain-wise", "random"])
def test_the_plain_tables_are_those_of_the_kept_runs(stream):
    (found,) = compare(runs_in(f"results/pacs/{stream}"))

    # The page is wrapped, and the notes below a table are not.
    assert " ".join(render_tables([found.table]).split()) in " ".join(TEXT.split())


def test_the_table_of_pools_is_that_of_the_kept_runs():
    runs = runs_in("results/pacs-pool", "results/pacs/*/simatta-b-100-?")

    table = render_tables(lay_out("ada", runs)).split("\n\n")[1]

    assert table in TEXT


@pytest.mark.parametrize(
    ("method", "row"),
    [
        ("source-only", "40.8 | 54.7 | 31.4 | 39.2 | 94.3 | 54.7 | 31.4 | 39.2 | 0 | 91"),
        ("batch-norm", "55.2 | 57.0 | 53.8 | 55.1 | 91.0 | 57.0 | 54.5 | 55.7 | 0 | 94"),
        ("simatta", "67.1 | 62.7 | 63.3 | 71.6 | 90.1 | 70.0 | 72.7 | 76.7 | 263 | 2,200"),
    ],
)
def test_the_rows_of_all_of_pacs_are_those_of_the_kept_runs(method, row):
    (run,) = runs_in(f"results/pacs-full/{method}")
    along = [run.end["stream_accuracy"], *run.end["segments"].values()]
    after = [run.end["source_accuracy"], *run.end["post_adaptation"].values()]
    costs = [run.end["labels"], run.end["seconds"]]
    figures = [*(f"{figure:.1f}" for figure in (*along, *after)), *(f"{n:,.0f}" for n in costs)]

    assert row == " | ".join(figures)
    assert f"| {row} |" in TEXT.replace("**", "")
