"""The learner's process, as the server starts it."""

import json
import os

import pytest

from attakit.service.serve import LEARNER_LOG, run_learner_process
from attakit.settings.service import ServiceSettings


@pytest.fixture
def settings(tmp_path):
    """Of a service whose weights were lost."""
    lost = {"name": "small_cnn", "weights": str(tmp_path / "lost.safetensors")}
    return ServiceSettings(folder=tmp_path, classes=("cat", "dog"), model=lost)


def test_a_learner_that_fails_leaves_one_structured_line(settings, untouched_logging, capsys):
    with pytest.raises(SystemExit) as ended:
        run_learner_process(settings, os.getpid())

    told = json.loads(capsys.readouterr().err)
    assert (told["level"], told["what"]) == ("error", "the learner failed")
    assert "lost.safetensors" in told["trace"]
    assert ended.value.code == 1


def test_the_learner_has_a_log_of_its_own_beside_that_of_the_server(
    settings, untouched_logging, tmp_path
):
    log_file = tmp_path / "logs" / "service.log"

    with pytest.raises(SystemExit):
        run_learner_process(settings, os.getpid(), log_file)

    assert [file.name for file in log_file.parent.iterdir()] == [LEARNER_LOG]
    assert json.loads((log_file.parent / LEARNER_LOG).read_text())["what"] == "the learner failed"
