from attakit.bench.suites.estimate import Estimate
from attakit.bench.suites.work import Ended, Outcome, Stepped

METHODS = {"slow-0": "slow", "slow-1": "slow", "quick-0": "quick", "quick-1": "quick"}


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def begun(workers=1):
    clock = Clock()
    return clock, Estimate(METHODS, workers=workers, clock=clock)


def test_nothing_is_said_before_anything_is_known():
    _, estimate = begun()

    estimate.note(Stepped("slow-0", 0, 10))

    assert estimate.left() is None


def test_cells_are_expected_to_take_as_long_as_others_of_their_method():
    clock, estimate = begun()
    for name, seconds in (("slow-0", 90.0), ("quick-0", 10.0)):
        estimate.note(Stepped(name, 0, 10))
        clock.now += seconds
        estimate.note(Ended(name, Outcome("finished")))

    assert estimate.left() == 100.0


def test_a_running_cell_is_judged_by_its_steps():
    clock, estimate = begun(workers=4)
    estimate.note(Stepped("slow-0", 5, 15))  # went on after five steps
    clock.now = 20.0
    estimate.note(Stepped("slow-0", 9, 15))

    assert estimate.left() == 50.0  # the longest of those that have not begun


def test_workers_share_what_is_left():
    clock, estimate = begun(workers=2)
    for name in ("slow-0", "quick-0"):
        estimate.note(Stepped(name, 0, 10))
    clock.now = 30.0
    for name in ("slow-0", "quick-0"):
        estimate.note(Ended(name, Outcome("finished")))

    assert estimate.left() == 30.0


def test_at_the_end_nothing_is_left():
    clock, estimate = begun()
    for name in METHODS:
        estimate.note(Stepped(name, 0, 1))
        clock.now += 1
        estimate.note(Ended(name, Outcome("finished")))

    assert estimate.left() == 0.0
