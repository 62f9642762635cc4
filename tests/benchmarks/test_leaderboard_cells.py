"""Only streams whose cells have all ended are ranked, and the others are named."""

import json

import leaderboard_cells
import pytest
from leaderboard_cells import complete_runs, missing_streams

SUITE = """
name = "small"
folder = "results/small"
[grid]
seeds = [0, 1]
[[grid.streams]]
label = "Mixed"
order = "random"
[[grid.streams]]
label = "Gradual"
order = "gradual"
[[grid.methods]]
label = "Tent"
method = { name = "tent" }
"""


@pytest.fixture
def suite(tmp_path, monkeypatch):
    monkeypatch.setattr(leaderboard_cells, "ROOT", tmp_path)
    (tmp_path / "suite.toml").write_text(SUITE)
    return tmp_path / "suite.toml"


def test_a_stream_counts_once_all_of_its_cells_have_ended(suite):
    for cell in ("mixed/tent-0", "mixed/tent-1", "gradual/tent-0"):
        _finish(suite.parent / "results/small" / cell)

    assert [run.end["stream_accuracy"] for run in complete_runs(suite)] == [50.0, 50.0]
    assert missing_streams(suite) == ["Gradual"]


def test_a_method_that_does_not_apply_has_ended(suite):
    for cell in ("mixed/tent-0", "mixed/tent-1", "gradual/tent-0"):
        _finish(suite.parent / "results/small" / cell)
    folder = suite.parent / "results/small/gradual/tent-1"
    folder.mkdir()
    (folder / "inapplicable.json").write_text('{"experiment": {}, "message": "no norm layers"}')

    assert missing_streams(suite) == []
    assert len(complete_runs(suite)) == 4


def _finish(folder):
    folder.mkdir(parents=True)
    first = {"kind": "run", "format": 1, "experiment": {}, "environment": {}, "segments": []}
    lines = [first, {"kind": "end", "stream_accuracy": 50.0}]
    (folder / "steps.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    (folder / "done").touch()
