"""`attakit validate`: three experiments, each with numbers and figures."""

import json

import pytest
from typer.testing import CliRunner

from attakit.cli import app
from attakit.errors import SettingError, StreamError, UnknownName

QUICK = ["--updates", "2", "--batch-size", "16", "--test-samples", "60", "--workers", "0"]
SURFACES = ["surfaces", "--points", "3", "--large", "60", "--small", "40", *QUICK]
ENTROPY = ["entropy", "--retrain", "40", "--fine-tune", "30", "--seeds", "1", *QUICK]
CLUSTERING = ["clustering", "--steps", "2", "--batch-size", "20", "--initial-clusters", "3"]


@pytest.fixture
def validate(tmp_path, monkeypatch, quick_digits):
    """Runs `attakit validate` in an empty folder; errors come through."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(app, ["validate", *arguments])
        if result.exception is not None:
            raise result.exception
        return result

    return run


def test_surfaces_are_told_and_drawn(validate, tmp_path):
    told = json.loads(validate(*SURFACES, "--json").stdout)

    names = ["target-large-start", "target-large", "target-small", "source-small", "combined-small"]
    assert list(told["surfaces"]) == names
    assert list(told["figures"]) == [*names, "all"]
    assert told["surfaces"]["target-small"]["lowest"].keys() == {"share", "weight", "loss"}
    folder = tmp_path / "figures" / "digits"
    files = {f"surface-{name}.png" for name in names} | {"surfaces.png", "surfaces.jsonl"}
    assert {path.name for path in folder.iterdir()} == files


def test_one_surface_ends_with_a_table_and_the_path_of_its_figure(validate, tmp_path):
    result = validate(*SURFACES, "--only", "source-small", "--folder", "here")

    assert "source-small" in result.stdout
    assert "surface-source-small.png" in result.stdout.replace("\n", "")
    assert "5/5" in result.stderr
    assert not (tmp_path / "here" / "surfaces.png").exists()


def test_entropy_sets_are_told_and_drawn(validate, tmp_path):
    told = json.loads(validate(*ENTROPY, "--json").stdout)

    assert len(told["rows"]) == 7
    assert (tmp_path / "figures/digits/entropy.png").samefile(told["figures"]["entropy"])
    assert "low entropy" in validate(*ENTROPY).stdout


def test_clustering_is_told_and_drawn(validate, tmp_path):
    told = json.loads(validate(*CLUSTERING, "--json").stdout)

    assert told["steps"][0] == {"clusters": 3, "known": 0, "chosen": 3}
    assert (tmp_path / "figures/digits/clustering.png").samefile(told["figures"]["clustering"])


@pytest.mark.parametrize(
    "command",
    [[*SURFACES, "--only", "target-small"], ENTROPY, CLUSTERING],
    ids=lambda words: words[0],
)
def test_quiet_says_nothing(validate, command):
    result = validate(*command, "--quiet")

    assert (result.stdout, result.stderr) == ("", "")


@pytest.mark.parametrize("command", ["surfaces", "entropy", "clustering"])
def test_wrong_data_are_refused(validate, command):
    with pytest.raises(UnknownName, match="Known: digits, pacs"):
        validate(command, "--data", "digit")
    with pytest.raises(StreamError, match="no folder nowhere"):
        validate(command, "--data", "pacs", "--root", "nowhere")


def test_wrong_settings_are_refused(validate):
    with pytest.raises(SettingError, match="points must be at least 3"):
        validate("surfaces", "--points", "1")
    with pytest.raises(SettingError, match="overlap"):
        validate("entropy", "--retrain", "1500")
