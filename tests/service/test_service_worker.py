"""Worker: what all background threads of the service have in common."""

import threading
import time

import pytest

from attakit.service.worker import Worker

PATIENCE = 20.0


class Counter(Worker):
    """Counts its runs; the first ones may fail."""

    def __init__(self, *, failures=0, enough=3, **options):
        super().__init__("counter", **options)
        self.to_fail = failures
        self.enough = enough
        self.runs = 0
        self.seen = []
        self.reached = threading.Event()

    def run_once(self):
        self.runs += 1
        if self.runs >= self.enough:
            self.reached.set()
        if self.to_fail:
            self.to_fail -= 1
            raise OSError("not now")

    def on_failure(self, error):
        self.seen.append(self.failures)
        super().on_failure(error)


def test_work_is_repeated_until_the_worker_is_stopped():
    with Counter(pause=0.001) as counter:
        assert counter.reached.wait(PATIENCE)
    runs = counter.runs

    time.sleep(0.02)

    assert counter.runs == runs
    assert not [thread for thread in threading.enumerate() if thread.name == "counter"]


def test_an_exception_is_logged_and_the_work_continues(caplog):
    with Counter(pause=0.001, failures=2) as counter:
        assert counter.reached.wait(PATIENCE)

    assert counter.seen == [1, 2]
    assert caplog.text.count("the counter failed") == 2
    assert "OSError: not now" in caplog.text


@pytest.mark.parametrize("options", [{"pause": 100.0}, {"pause": None}])
def test_a_pause_ends_when_somebody_wakes_or_stops_the_worker(options):
    with Counter(enough=1, **options) as counter:
        time.sleep(0.02)
        before = counter.runs
        counter.wake()
        assert counter.reached.wait(PATIENCE)

    assert (before, counter.runs) == (0, 1)


def test_a_failure_is_followed_by_the_pauses_for_failures():
    with Counter(pause=0.001, failures=10**6, retry_pauses=(0.001, 100.0)) as counter:
        counter.reached.wait(0.1)

    assert counter.seen == [1, 2]


def test_a_worker_starts_once_and_starts_again_after_it_was_stopped():
    counter = Counter(pause=0.001, enough=1)
    counter.stop()  # nothing runs yet
    counter.start()
    counter.start()
    names = [thread.name for thread in threading.enumerate()]
    counter.stop()
    counter.reached.clear()

    counter.start()
    again = counter.reached.wait(PATIENCE)
    counter.stop()

    assert names.count("counter") == 1
    assert again
