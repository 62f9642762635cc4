"""Commands of the texts that take a moment are run: on committed results, and on small services."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from attakit.cli import app
from attakit.service.saved_settings import save_settings
from attakit.service.storage import Question, ServedSample, open_storage
from attakit.settings.service import ServiceSettings
from test_commands_in_texts import SHOWN

ROOT = Path(__file__).parent.parent
QUICK = ("list", "plot", "questions", "table", "token")


def is_quick(command):
    """Whether a command can be pasted, takes a moment, and finds its results in the repository."""
    program, *words = command.words
    folders = [word for word in words if word.startswith(("results/", "runs/"))]
    there = all(list(ROOT.glob(folder)) for folder in folders)
    return program == "attakit" and command.whole and words[0] in QUICK and there


COMMANDS = [pytest.param(each, id=str(each)) for each in SHOWN if is_quick(each)]


def make_service(folder):
    """A service that has put a question and is not running."""
    save_settings(ServiceSettings(folder=folder, classes=("cat", "dog")))
    with open_storage(folder) as storage:
        storage.samples.add([ServedSample("a", None, 0, 0, 0.5, 0.5, 1.0)])
        storage.questions.put([Question(0, "a", 0, "learn", 0, 0.5, ((1, 0.9),), 1.0)])


@pytest.fixture
def _workplace(tmp_path, monkeypatch):
    """A folder as the texts suppose it: results, and two services."""
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to(ROOT / "results")
    make_service(tmp_path / "live")
    make_service(tmp_path / "service")


def expanded(words):
    """The words as a shell hands them over: a pattern becomes the files that fit it."""
    for word in words:
        found = sorted(map(str, Path().glob(word))) if word.startswith("results/") else []
        yield from found or [word]


def test_there_are_commands_to_run():
    assert len(COMMANDS) > 15
    assert {command.values[0].words[1] for command in COMMANDS} == set(QUICK)


@pytest.mark.usefixtures("_workplace")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_quick_command_runs(command):
    if "import" in command.words:
        Path("questions.csv").write_text("question,answer\n1,dog\n", encoding="utf-8")

    ended = CliRunner().invoke(app, list(expanded(command.words[1:])))

    assert ended.exit_code == 0, ended.output or ended.exception
    if "--out" in command.words:
        assert Path(command.words[command.words.index("--out") + 1]).stat().st_size > 0
    else:
        assert ended.output.strip()
