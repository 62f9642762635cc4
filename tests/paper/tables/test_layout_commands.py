"""`attakit table --layout` and `attakit plot`, from folders to files."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from attakit.cli import app
from attakit.errors import SettingError, StateError, UnknownName


@pytest.fixture
def folders(make_run, tmp_path):
    """Two runs on a stream that is called PACS."""
    for place, label in enumerate(("EATA", "mine")):
        make_run(
            f"runs/{place}",
            pictures=False,
            right=3 + place,
            segments=("art_painting", "sketch"),
            experiment={"seed": 0, "label": label, "stream": {"name": "pacs", "batch_size": 6}},
        )
    return tmp_path / "runs"


def call(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_a_layout_is_printed_with_the_papers_numbers(folders):
    text = call("table", folders, "--layout", "tta", "--format", "markdown")

    assert "| EATA | 50.0 | 50.0 |" in text
    assert "| *paper* | *67.04* | *50.27* |" in text
    assert "| mine | **66.7** |" in text


def test_a_layout_is_shown_in_the_terminal(folders):
    text = call("table", folders, "--layout", "ada")

    assert text.startswith("ADA comparisons on PACS")
    assert "Batches of 6 for all." in " ".join(text.split())


def test_a_layout_as_json(folders):
    (sheet,) = json.loads(call("table", folders, "--layout", "tta", "--json"))["sheets"]

    assert sheet["lines"][0]["label"] == "EATA"
    assert sheet["lines"][0]["entries"][0]["paper"]["value"] == 67.04


def test_an_unknown_layout_is_refused(folders):
    with pytest.raises(
        UnknownName,
        match="Known: ada, complete, corruptions, enhanced, leaderboard, paired, plain, tta",
    ):
        call("table", folders, "--layout", "grid")


def test_the_layout_of_the_suite_is_taken_unless_another_is_named(folders):
    suite = {"layout": "ada", "cells": [{"name": "0"}, {"name": "1"}]}
    (folders / "suite.json").write_text(json.dumps(suite), encoding="utf-8")

    assert call("table", folders).startswith("ADA comparisons on PACS")
    assert call("table", folders / "0", folders / "1").startswith("ADA comparisons on PACS")
    assert call("table", folders, "--layout", "tta").startswith("TTA comparisons on PACS")
    assert call("table", folders, "--layout", "plain").startswith("method")


def test_a_suite_does_not_lay_out_other_runs_in_its_folder(folders):
    suite = {"layout": "ada", "cells": [{"name": "0"}]}
    (folders / "suite.json").write_text(json.dumps(suite), encoding="utf-8")

    assert call("table", folders / "0").startswith("ADA comparisons on PACS")
    assert call("table", folders / "1").startswith("method")


def test_pairs_are_compared_with_the_method_that_the_suite_or_the_command_names(folders):
    with pytest.raises(SettingError, match=r"Give --against METHOD; there are EATA, mine\."):
        call("table", folders, "--layout", "paired")
    assert "to EATA" in call("table", folders, "--layout", "paired", "--against", "EATA")

    (folders / "suite.json").write_text('{"layout": "paired", "against": "mine"}', "utf-8")

    assert "Difference to mine (points)" in call("table", folders)


def test_folders_of_several_suites_have_no_layout_in_common(folders):
    (folders / "suite.json").write_text('{"layout": "ada"}', encoding="utf-8")
    (folders / "1" / "suite.json").write_text('{"layout": "ada"}', encoding="utf-8")

    assert call("table", folders / "0", folders / "1").startswith("method")


def test_a_suite_that_names_no_layout_has_plain_tables(folders):
    (folders / "suite.json").write_text('{"name": "mine"}', encoding="utf-8")

    assert call("table", folders).startswith("method")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_list_of_cells_is_told(folders, text):
    (folders / "suite.json").write_text(text, encoding="utf-8")

    with pytest.raises(StateError, match=r"suite\.json is damaged"):
        call("table", folders)
    assert call("table", folders, "--layout", "plain").startswith("method")


def test_a_plot_is_written(folders, tmp_path):
    told = call("plot", folders, "--kind", "seconds", "--out", tmp_path / "plot.svg")

    assert (tmp_path / "plot.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert "plot.svg" in told


def test_a_plot_is_told_as_json_or_not_at_all(folders, tmp_path):
    path = tmp_path / "plot.png"

    assert json.loads(call("plot", folders, "-o", path, "--json")) == {"plot": str(path)}
    assert call("plot", folders, "-o", path, "--quiet") == ""
