"""SampleWriter: nothing is lost, nothing waits without bound."""

import threading

from attakit.service.storage.rows import ServedSample
from attakit.service.web.writer import SampleWriter


def served(name, size=1):
    return ServedSample(name, b"x" * size, 0, 0, 0.5, 0.5, 0.0)


class Store:
    def __init__(self, failures=0):
        self.failures = failures
        self.may = threading.Event()
        self.names = []

    def add(self, samples):
        assert self.may.wait(10)
        if self.failures:
            self.failures -= 1
            raise OSError("disk full")
        self.names += [one.sample for one in samples]


def test_samples_are_written_in_order_and_before_the_end():
    store = Store()
    writer = SampleWriter(store)
    writer.start()

    for number in range(50):
        assert writer.put([served(str(number))])
    store.may.set()
    writer.stop()

    assert store.names == [str(number) for number in range(50)]
    assert not writer.put([served("late")])


def test_too_many_are_turned_away_and_room_is_made_again():
    store = Store()
    with SampleWriter(store, capacity=3) as writer:
        assert writer.put([served("a"), served("b")])
        assert not writer.put([served("c"), served("d")])
        assert writer.find("b").sample == "b"
        store.may.set()
        assert writer.flush()
        assert writer.put([served("e"), served("f")])

    assert store.names == ["a", "b", "e", "f"]


def test_too_large_ones_are_turned_away():
    store = Store()
    store.may.set()
    with SampleWriter(store, capacity_bytes=10) as writer:
        assert not writer.put([served("large", 11)])
        assert writer.put([served("small", 10)])

    assert store.names == ["small"]


def test_what_could_not_be_written_is_tried_again():
    store = Store(failures=2)
    store.may.set()
    with SampleWriter(store, retry_pauses=(0.001,)) as writer:
        writer.put([served("a")])
        assert writer.flush()

    assert store.names == ["a"]


def test_a_store_that_never_recovers_does_not_keep_the_server_from_ending():
    store = Store(failures=1000)
    store.may.set()
    writer = SampleWriter(store, retry_pauses=(0.001,))
    writer.start()
    writer.put([served("a")])

    writer.stop()

    assert writer.waiting == 1


def test_samples_that_come_one_after_the_other_share_a_transaction_until_somebody_hurries():
    batches = []

    class Batches:
        def add(self, samples):
            batches.append(len(samples))

    with SampleWriter(Batches(), gather_seconds=60.0) as writer:
        for number in range(20):
            writer.put([served(str(number))])
        assert writer.flush()
        assert batches == [20]
        writer.put([served("last")])

    assert batches == [20, 1]
