import os
import subprocess
import sys
import time

import pytest

from attakit.errors import StateError
from attakit.service.lock import exclusive_lock

HOLD = """
import sys, time
from pathlib import Path
from attakit.service.lock import exclusive_lock
with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_one_works_on_a_folder_and_the_next_after_it(tmp_path):
    path = tmp_path / "live" / "server.lock"

    with (
        exclusive_lock(path),
        pytest.raises(StateError, match="The server: another server is using"),
        exclusive_lock(path),
    ):
        pass
    with exclusive_lock(path):
        pass


def test_the_lock_says_who_holds_it_and_ends_with_a_process_that_is_killed(tmp_path):
    path = tmp_path / "learner.lock"
    path.write_text("1234567890")  # of one that was killed before
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    named = path.read_text()
    with pytest.raises(StateError, match="is using"), exclusive_lock(path):
        pass
    unchanged = path.read_text()

    holder.kill()
    began = time.monotonic()
    with exclusive_lock(path, 10.0):
        took = time.monotonic() - began
        own = path.read_text()
    holder.communicate()

    assert named == unchanged == str(holder.pid)
    assert own == str(os.getpid())
    assert took < 5
