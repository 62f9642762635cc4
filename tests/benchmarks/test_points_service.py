"""The service that is killed on purpose."""

import os
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from points_service import PointsService

from attakit.service.learner.leading import LOCK_FILE

WAIT = "import time; time.sleep(600)"
PARENT = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {WAIT!r}]).pid, flush=True)
{WAIT}
"""


@pytest.fixture
def service(tmp_path):
    """A service whose server is a process with a child."""
    service = PointsService(tmp_path, "")
    service.live.mkdir()
    service.process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE)
    child = int(service.process.stdout.readline())
    (service.live / LOCK_FILE).write_text(str(child))
    yield service
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    service.kill_server()


def test_the_learner_that_the_lock_names_is_killed(service):
    assert service.kill_learner()


def test_a_process_that_took_over_the_number_of_a_learner_lives(service):
    with subprocess.Popen([sys.executable, "-c", WAIT]) as other:
        (service.live / LOCK_FILE).write_text(str(other.pid))

        assert not service.kill_learner()
        assert other.poll() is None
        other.kill()
