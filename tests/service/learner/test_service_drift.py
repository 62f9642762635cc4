"""Alarms come when the stream changes, and hardly ever when it does not."""

import pytest
import torch

from attakit.records import Prediction
from attakit.service.learner import drift
from attakit.service.learner.drift import Drift, Monitor
from states import same_state


def batch(seed, size=50, *, sharp=4.0, favourite=None, shift=0.0):
    """What a source model might say; `favourite` is a class that comes more often."""
    random = torch.Generator().manual_seed(seed)
    classes = torch.randint(5, (size,), generator=random)
    if favourite is not None:
        classes[: int(0.8 * size)] = favourite
    noise = torch.randn(size, 5, generator=random)
    features = torch.randn(size, 8, generator=random) + shift
    return Prediction(sharp * torch.eye(5)[classes] + noise, features)


def alarms(callbacks, numbers, **change):
    found = [callbacks.observe(batch(number, **change)).alarms for number in numbers]
    return [alarm for several in found for alarm in several]


def test_a_stream_that_stays_the_same_gives_no_alarm():
    assert alarms(Drift(), range(60)) == []


def test_uncertainty_that_rises_gives_an_alarm():
    callbacks = Drift()
    alarms(callbacks, range(10))

    (first, *_) = alarms(callbacks, range(10, 13), sharp=0.5)

    assert first.what == "entropy"
    assert first.after > first.before
    assert "The uncertainty of the source model rose from" in first.text


def test_an_alarm_tells_the_levels_before_and_after_the_change():
    random = torch.Generator().manual_seed(0)
    monitor = Monitor("entropy", 0.002)
    levels = [0.3] * 20 + [0.45] * 20
    values = [(level + 0.2 * torch.randn(50, generator=random)).tolist() for level in levels]

    (alarm,) = [found for several in values if (found := monitor.update(several))]

    assert alarm.before == pytest.approx(0.3, abs=0.03)
    assert alarm.after == pytest.approx(0.45, abs=0.05)


def test_another_mix_of_predictions_gives_an_alarm():
    callbacks = Drift()
    alarms(callbacks, range(10))

    found = alarms(callbacks, range(10, 16), favourite=3)

    assert {alarm.what for alarm in found} == {"mix"}


def test_features_that_move_away_give_an_alarm():
    callbacks = Drift()
    alarms(callbacks, range(10))

    found = alarms(callbacks, range(10, 16), shift=3.0)

    assert {alarm.what for alarm in found} == {"distance"}


def test_after_an_alarm_what_comes_now_is_usual():
    callbacks = Drift()
    alarms(callbacks, range(10))
    assert alarms(callbacks, range(10, 20), shift=3.0)

    assert alarms(callbacks, range(20, 60), shift=3.0) == []


def test_small_batches_are_watched_too():
    callbacks = Drift()
    alarms(callbacks, range(200), size=3)

    assert alarms(callbacks, range(200, 260), size=3, sharp=0.2)


def test_readings_lie_between_nothing_and_one():
    callbacks = Drift()
    alarms(callbacks, range(5))

    reading = callbacks.observe(batch(6, shift=1e6))

    assert all(0 <= each <= 1 for each in (reading.entropy, reading.mix, reading.distance))


@pytest.mark.parametrize("stop", [1, 7, 12, 25])
def test_a_monitor_that_is_saved_and_loaded_goes_on_the_same_way(stop, monkeypatch):
    monkeypatch.setattr(drift, "MEMORY", 200)  # so that older values are dropped on the way
    whole, stopped = Drift(), Drift()
    seen = []
    for number in range(40):
        change = {"sharp": 1.0} if number > 20 else {}
        if number == stop:
            fresh = Drift()
            fresh.load_state_dict(stopped.state_dict())
            stopped = fresh
        seen.append([one.observe(batch(number, **change)) for one in (whole, stopped)])

    assert all(first == second for first, second in seen)
    assert same_state(whole.state_dict(), stopped.state_dict())


def test_a_monitor_keeps_no_more_values_than_it_may(monkeypatch):
    monkeypatch.setattr(drift, "MEMORY", 100)
    monitor = Monitor("entropy", 0.002)

    for _ in range(50):
        monitor.update([0.5] * 30)

    assert len(monitor.values) <= 200
