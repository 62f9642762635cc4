"""The settings that compete for the leaderboard, and the files that come of them."""

import json
import tomllib

import leaderboard_grid
import pytest
from leaderboard_grid import (
    CHOICES,
    FILES,
    as_toml,
    grid_file,
    grid_tables,
    tuned_files,
    tuned_tables,
)

from attakit.bench.suites.cells import expand
from attakit.settings.suite import load_suite, parse_suite


@pytest.fixture
def published():
    streams = [
        {"label": "Names", "name": "names", "order": "domain_after_domain"},
        {"label": "Names mixed", "name": "names", "order": "random"},
        {"label": "Names gradual", "name": "names", "order": "gradual"},
        {"label": "PACS", "name": "pacs", "order": "correlated"},
    ]
    methods = [
        {"label": "Source only", "method": {"name": "source_only"}},
        {"label": "Tent", "method": {"name": "tent"}},
        {"label": "SimATTA", "method": {"name": "simatta"}},
    ]
    grid = {"seeds": [0, 1, 2], "streams": streams, "methods": methods}
    return {"name": "all", "folder": "results/all", "layout": "leaderboard", "grid": grid}


def test_a_method_competes_with_two_other_settings_on_a_seed_of_its_own(published):
    cells = expand(parse_suite(grid_tables(published)))
    assert [cell.name for cell in cells] == [
        "names/source-only-10",
        "names/tent-10",
        "names/tent-lr-0-0001-10",
        "names/tent-lr-0-01-10",
        "names/simatta-10",
        "names/simatta-trainer-lr-0-0001-10",
        "names/simatta-trainer-lr-0-001-10",
    ]
    assert cells[-1].experiment.method.settings["trainer"] == {"name": "distilling", "lr": 1e-3}


def test_the_best_setting_is_reported_and_of_equal_ones_the_published(
    published, tmp_path, monkeypatch
):
    accuracies = {"tent-10": 70.0, "tent-lr-0-01-10": 71.0, "simatta-10": 80.0}
    for cell in expand(parse_suite(grid_tables(published))):
        _write_run(tmp_path / cell.folder, accuracies.get(cell.folder.name, 60.0))
    monkeypatch.setattr(leaderboard_grid, "ROOT", tmp_path)
    grid = tuned_tables(published, "names")["grid"]
    assert [one["method"] for one in grid["methods"]] == [
        {"name": "source_only"},
        {"name": "tent", "lr": 0.01},
        {"name": "simatta"},
    ]
    assert [one["label"] for one in grid["methods"]] == ["Source only", "Tent", "SimATTA"]
    assert [one["order"] for one in grid["streams"]] == ["domain_after_domain", "random"]
    assert grid["seeds"] == [0, 1, 2]


def test_a_suite_is_written_as_it_is(published):
    assert tomllib.loads(as_toml(published, "why")) == published


def test_the_committed_grid_is_what_the_command_writes():
    for path, text in grid_file().items():
        assert path.read_text(encoding="utf-8") == text


def test_the_committed_choices_are_what_the_results_of_the_grid_say():
    for path, text in tuned_files().items():
        assert path.read_text(encoding="utf-8") == text


def test_every_published_method_but_the_source_model_has_a_choice():
    labels = [entry.label for entry in load_suite(FILES / "published.toml").grid.methods]
    assert ["Source only", *CHOICES] == labels


def _write_run(folder, accuracy):
    folder.mkdir(parents=True)
    first = {"kind": "run", "format": 1, "experiment": {}, "environment": {}, "segments": []}
    lines = [first, {"kind": "end", "stream_accuracy": accuracy}]
    (folder / "steps.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
