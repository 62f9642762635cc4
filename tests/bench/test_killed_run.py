"""Runs in processes of their own, killed and stopped in the middle."""

import random
import signal
import subprocess
import sys
import time

import pytest

from attakit.bench.run import run_experiment
from attakit.report.jsonlines import STEPS_FILE
from attakit.settings.load import load_experiment

EXPERIMENT = """
threads = 1
[stream]
targets = ["outline"]
share = 0.25
batch_size = 10
[method.selector]
inits = 1
[method.trainer]
max_updates = 8
[labels]
budget = 30
delay = 1
jitter = 2
noise = 0.1
skips = 0.1
[report]
source_every = 0
post_adaptation = false
save_every = 3
"""
DEADLINE = 180.0


@pytest.fixture
def experiment_file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def start(experiment_file, tmp_path, program_environment):
    """Starts the command in the background; whatever happens, it does not outlive the test."""
    started = []

    def begin(*options):
        command = [sys.executable, "-m", "attakit", "run", str(experiment_file), "--quiet"]
        process = subprocess.Popen(
            [*command, "--set", f"report.folder={tmp_path / 'broken'}", *options],
            env=program_environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def wait_for_steps(folder, count, process):
    """Wait until a run has written so many steps."""
    deadline, file = time.monotonic() + DEADLINE, folder / STEPS_FILE
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the run ended early: {process.communicate()[1]}")
        if file.exists() and file.read_bytes().count(b"\n") > count:  # the first is no step
            return
        time.sleep(0.002)
    pytest.fail(f"{count} steps did not come in {DEADLINE:.0f} seconds")


def test_a_run_killed_twice_and_stopped_once_continues_bit_for_bit(
    start, experiment_file, tmp_path, quick_digits, results
):
    moments = random.Random(0)
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for options, first in (((), 1), (("--resume",), 7)):
        process = start(*options)
        wait_for_steps(broken, first + moments.randrange(4), process)
        time.sleep(moments.random() * 0.05)  # somewhere inside a step
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    process = start("--resume")
    wait_for_steps(broken, 14, process)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out) == (130, "")
    assert "--resume" in errors
    assert "Traceback" not in errors
    run_experiment(load_experiment(experiment_file, [f"report.folder={broken}"]), resume=True)
    run_experiment(load_experiment(experiment_file, [f"report.folder={whole}"]))
    assert results(broken) == results(whole)
