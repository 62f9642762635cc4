import signal
import threading

import pytest

from attakit.processes.interrupt import Interrupted, ignoring_ctrl_c, stoppable, until


def press(number=signal.SIGINT):
    signal.raise_signal(number)


def press_twice():
    press()
    press()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_only_asks_to_stop(number):
    with stoppable("Stopped.") as stop:
        assert not stop.is_set()
        press(number)
        assert stop.is_set()


def test_the_second_signal_stops_at_once_with_the_message():
    with pytest.raises(Interrupted, match="Go on with care"), stoppable("Go on with care."):
        press_twice()


def test_work_that_waits_for_a_person_stops_at_the_first_signal():
    with pytest.raises(Interrupted), stoppable("Stopped.", at_once=True):
        press()


def test_signals_mean_afterwards_what_they_meant_before():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError), stoppable("Stopped."):
        1 / 0  # noqa: B018
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_in_another_thread_signals_are_left_alone():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with stoppable("Stopped.") as stop:
            seen.append((signal.getsignal(signal.SIGINT), stop.is_set()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(before, False)]


def test_ctrl_c_can_be_ignored_for_a_while():
    before = signal.getsignal(signal.SIGINT)
    with ignoring_ctrl_c():
        press()
    assert signal.getsignal(signal.SIGINT) is before


def test_batches_end_with_the_one_during_which_the_stop_came():
    stop, seen = threading.Event(), []
    for batch in until(stop, range(5)):
        seen.append(batch)
        if batch == 2:
            stop.set()
    assert seen == [0, 1, 2]
