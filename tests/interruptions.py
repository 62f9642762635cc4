"""Things that happen to a run in the middle, for tests of runs that are stopped."""

import signal

import pytest

from attakit.bench.run import run_experiment
from attakit.bench.stopping import Interrupted
from attakit.bench.watch import Watch


class At:
    """Does something at one step, before the run is saved."""

    def __init__(self, step, action):
        self.step = step
        self.action = action
        self.seen = []

    def on_step(self, moment):
        self.seen.append(moment.batch.step)
        if moment.batch.step == self.step:
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
        run_experiment(experiment, watch=Watch(observers=lambda *_: [observer]), **options)
    return caught.value, observer
