"""Things that happen to a run in the middle, for tests of runs that are stopped."""

import json
import signal

import pytest

from attakit.bench.run import RunCallbacks, run_experiment
from attakit.processes.interrupt import Interrupted
from attakit.report.jsonlines import STEPS_FILE


class At:
    """Does something at one step, before the run is saved."""

    def __init__(self, step, action):
        self.step = step
        self.action = action
        self.seen = []

    def on_step(self, result):
        self.seen.append(result.batch.step)
        if result.batch.step == self.step:
            self.action()

    def close(self):
        self.seen.append("closed")


class Crash(Exception):
    pass


def crash():
    raise Crash


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def stopped(experiment, step, action, **options):
    """Run up to a step at which something happens."""
    observer = At(step, action)
    with pytest.raises((Crash, Interrupted)) as caught:
        run_experiment(
            experiment, callbacks=RunCallbacks(observers=lambda *_: [observer]), **options
        )
    return caught.value, observer


def pretend_another_model(folder):
    """Change the recorded fingerprint of the source model that a run started from."""
    lines = folder / STEPS_FILE
    first, *rest = lines.read_text().splitlines()
    told = json.loads(first)
    told["environment"]["model"] = "another"
    lines.write_text("\n".join([json.dumps(told), *rest]) + "\n")
