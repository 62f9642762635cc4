import numpy as np
import pytest
import torch

from attakit.errors import SettingError, StateError
from attakit.report.features import FEATURES_FILE, Features, pack, read_features, unpack


def twice(inputs):
    return 2 * inputs.flatten(1)


def anchors(low=3, high=2):
    return lambda: {"low": torch.full((low, 4), 5.0), "high": torch.full((high, 4), 7.0)}


@pytest.fixture
def moments(make_step_result):
    return [
        make_step_result(step, [0, 1, 2], inputs=torch.full((3, 4), step + 1.0))
        for step in range(9)
    ]


def record(folder, moments, **settings):
    features = Features(folder / FEATURES_FILE, encode=twice, **settings)
    for result in moments:
        features.on_step(result)
    features.close()
    return read_features(folder)


def test_features_of_stream_anchors_and_source_are_read_back(tmp_path, moments):
    read = record(tmp_path, moments[:2], anchors=anchors(), source=torch.ones(5, 4))

    assert read.source.tolist() == [[2.0] * 4] * 5
    assert list(read.steps) == [0, 1]
    assert read.steps[1]["stream"].tolist() == [[4.0] * 4] * 3
    assert read.steps[1]["low"].tolist() == [[10.0] * 4] * 3
    assert read.steps[1]["high"].tolist() == [[14.0] * 4] * 2


def test_empty_sets_and_a_missing_source_are_left_out(tmp_path, moments):
    read = record(tmp_path, moments[:1], anchors=anchors(low=0))

    assert read.source is None
    assert read.steps[0].keys() == {"stream", "high"}


def test_large_sets_are_drawn_from_at_random_but_alike_for_a_seed(tmp_path, make_step_result):
    inputs = torch.arange(50.0).repeat(2, 1).T.contiguous()
    turn = make_step_result(0, [0] * 50, inputs=inputs)

    draws = [
        record(tmp_path / str(place), [turn], max_samples=10, seed=seed).steps[0]["stream"]
        for place, seed in enumerate((1, 1, 2))
    ]

    assert len(draws[0]) == len(np.unique(draws[0], axis=0)) == 10
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_long_streams_are_recorded_ever_more_rarely(tmp_path, moments):
    read = record(tmp_path, moments, max_steps=2)

    assert list(read.steps) == [0, 1, 2, 4, 8]


def test_a_resumed_record_equals_an_unbroken_one(tmp_path, moments):
    source = torch.ones(2, 4)
    whole = tmp_path / "whole"
    record(whole, moments, anchors=anchors(), source=source)
    broken = tmp_path / "broken"
    record(broken, moments[:6], anchors=anchors(), source=source)
    record(broken, moments[4:], anchors=anchors(), source=source, resume_after=3)

    assert (broken / FEATURES_FILE).read_bytes() == (whole / FEATURES_FILE).read_bytes()


def test_recording_may_begin_when_a_run_goes_on(tmp_path, moments):
    read = record(tmp_path, moments[4:5], source=torch.ones(2, 4), resume_after=3)

    assert list(read.steps) == [4]
    assert len(read.source) == 2


def test_a_torn_last_line_of_a_live_run_is_left_out(tmp_path, moments):
    record(tmp_path, moments[:3])
    file = tmp_path / FEATURES_FILE
    file.write_bytes(file.read_bytes()[:-30])

    assert list(read_features(tmp_path).steps) == [0, 1]


def test_a_run_without_features_gives_an_empty_record(tmp_path):
    read = read_features(tmp_path)

    assert read.source is None
    assert read.steps == {}


def test_a_damaged_line_is_named(tmp_path, moments):
    record(tmp_path, moments[:2])
    file = tmp_path / FEATURES_FILE
    file.write_text(file.read_text().replace('"shape": [3, 4]', '"shape": [9, 4]', 1))

    with pytest.raises(StateError, match=r"line 2: cannot read features"):
        read_features(tmp_path)


def test_numbers_too_large_for_half_precision_are_kept():
    large = np.array([[1e6, -3.0]], dtype=np.float32)

    assert np.array_equal(unpack(pack(large)), large)
    assert pack(large)["type"] == "<f4"


def test_settings_are_checked(tmp_path):
    with pytest.raises(SettingError, match="max_samples must be at least 1"):
        Features(tmp_path / FEATURES_FILE, encode=twice, max_samples=0)
