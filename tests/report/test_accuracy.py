from __future__ import annotations

from attakit.report import Accuracy

LABELS = {"0-0": 0, "0-1": 1, "1-0": 2, "1-1": 0}
SEGMENTS = {"0-0": "day", "0-1": "day", "1-0": "day", "1-1": "night"}


def test_counts_are_kept_per_step_over_the_stream_and_per_segment(make_step_result):
    accuracy = Accuracy(LABELS, SEGMENTS)

    accuracy.on_step(make_step_result(0, [0, 0]))
    accuracy.on_step(make_step_result(1, [2, 0]))

    assert accuracy.step_count == (2, 2)
    assert accuracy.step_segments == {"day": (1, 1), "night": (1, 1)}
    assert accuracy.stream == 75.0
    assert accuracy.segments == {"day": 100.0 * 2 / 3, "night": 100.0}


def test_a_step_that_two_reporters_pass_on_counts_once(make_step_result):
    accuracy = Accuracy(LABELS)
    turn = make_step_result(0, [0, 0])

    accuracy.on_step(turn)
    accuracy.on_step(turn)

    assert accuracy.step_count == (1, 2)
    assert accuracy.stream == 50.0


def test_samples_without_a_known_label_are_not_counted(make_step_result):
    accuracy = Accuracy({"0-1": 1})

    accuracy.on_step(make_step_result(0, [0, 1]))

    assert accuracy.step_count == (1, 1)


def test_nothing_counted_has_no_accuracy(make_step_result):
    accuracy = Accuracy({})

    accuracy.on_step(make_step_result(0, [0, 1]))

    assert accuracy.stream is None
    assert accuracy.segments == {}


def test_a_saved_count_goes_on_like_an_unbroken_one(make_step_result):
    unbroken, first, second = (Accuracy(LABELS, SEGMENTS) for _ in range(3))
    for accuracy in (unbroken, first):
        accuracy.on_step(make_step_result(0, [0, 0]))

    second.load_state_dict(first.state_dict())
    for accuracy in (unbroken, second):
        accuracy.on_step(make_step_result(1, [1, 0]))

    assert second.state_dict() == unbroken.state_dict()
    assert second.stream == 50.0
