from __future__ import annotations

import pytest

from attakit.report import RunRecord
from attakit.report.curves import MAX_POINTS, Band, average, bands, recorded, smoothed_accuracy


def run(steps, seed=1):
    return RunRecord({"seed": seed, "label": "m"}, {}, [], [], steps, None)


def step(correct, segment="day", size=10, **more):
    return {
        "size": size,
        "correct": correct,
        "counted": size,
        "segments": {segment: [correct, size]} if segment else {},
        **more,
    }


def test_bands_follow_the_segments_and_may_return():
    names = ["day", "day", "night", "day"]

    found = bands(run([step(1, name) for name in names]))

    assert found == [Band("day", 0, 20), Band("night", 20, 30), Band("day", 30, 40)]


def test_a_step_without_a_main_segment_belongs_to_no_band():
    mixed = {"size": 9, "segments": {"a": [1, 3], "b": [1, 3], "c": [1, 3]}}

    assert bands(run([mixed, step(1, "a")])) == [Band("a", 9, 19)]


def test_segments_that_alternate_too_quickly_are_not_shown():
    assert bands(run([step(1, "ab"[n % 2]) for n in range(40)])) == []


def test_smoothing_stops_at_the_border_of_a_segment():
    steps = [step(10, "day")] * 20 + [step(0, "night")] * 20

    assert smoothed_accuracy(run(steps)) == [100.0] * 20 + [0.0] * 20


def test_smoothing_averages_neighbours():
    steps = [step(10 * (n % 2)) for n in range(42)]

    smooth = smoothed_accuracy(run(steps))

    assert max(smooth[5:-5]) - min(smooth[5:-5]) < 40


def test_a_stream_without_truth_has_no_curve():
    steps = [{"size": 4, "correct": 0, "counted": 0, "segments": {}}] * 3

    assert average((run(steps),), smoothed_accuracy).x == []


def test_seeds_are_averaged_and_a_shorter_run_counts_as_far_as_it_goes():
    long = run([step(1, n=10.0), step(1, n=20.0)])
    short = run([step(1, n=30.0)], seed=2)

    curve = average((short, long), recorded("n"))

    assert (curve.x, curve.y) == ([10, 20], [20.0, 20.0])
    assert (curve.low, curve.high) == ([10.0, 20.0], [30.0, 20.0])


def test_steps_without_the_number_are_left_out():
    steps = [step(1, n=1.0), step(1), step(1, n=3.0)]

    assert average((run(steps),), recorded("n")).x == [10, 30]


def test_a_long_curve_is_thinned_from_end_to_end():
    curve = average((run([step(1, n=float(n)) for n in range(5000)]),), recorded("n"))

    assert len(curve.x) == MAX_POINTS
    assert (curve.y[0], curve.y[-1]) == (0.0, 4999.0)
    assert curve.y == pytest.approx(sorted(curve.y))
