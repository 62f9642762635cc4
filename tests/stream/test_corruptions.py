"""One image, corrupted."""

import sys

import numpy as np
import pytest

from attakit.errors import MissingExtra, SettingError, StreamError, UnknownName
from attakit.stream import CORRUPTIONS, EXTRA_CORRUPTIONS, corrupt_image
from attakit.stream.corruptions import import_corruptions

ALWAYS_THE_SAME = {
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
}


@pytest.fixture
def image():
    rows, columns = np.mgrid[0:48, 0:40]
    channels = [4 * rows, 5 * columns, 2 * (rows + columns)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def test_the_names_are_those_of_the_library_in_its_order():
    assert [*CORRUPTIONS, *EXTRA_CORRUPTIONS] == import_corruptions().get_corruption_names("all")


@pytest.mark.parametrize("name", [*CORRUPTIONS, *EXTRA_CORRUPTIONS])
def test_a_seed_decides_the_picture_and_global_randomness_is_left_alone(image, name):
    before = np.random.get_state()[1].tolist()

    first, again, other = (corrupt_image(image, name, 5, seed=seed) for seed in (1, 1, 2))

    assert first.shape == image.shape
    assert first.dtype == np.uint8
    assert not np.array_equal(first, image)
    assert np.array_equal(first, again)
    assert np.array_equal(first, other) == (name in ALWAYS_THE_SAME)
    assert np.random.get_state()[1].tolist() == before


def test_a_higher_severity_changes_more(image):
    far = [
        np.abs(corrupt_image(image, "gaussian_noise", severity, seed=0).astype(int) - image).mean()
        for severity in (1, 3, 5)
    ]

    assert far[0] < far[1] < far[2]


def test_global_randomness_is_put_back_after_an_error(image, monkeypatch):
    def fail(*_, **__):
        np.random.random()
        raise RuntimeError("broken")

    monkeypatch.setattr(import_corruptions(), "corrupt", fail)
    before = np.random.get_state()[1].tolist()

    with pytest.raises(RuntimeError, match="broken"):
        corrupt_image(image, "fog", 1, seed=0, parameters="imagenet")

    assert np.random.get_state()[1].tolist() == before


def test_an_unknown_corruption_gets_the_nearest_name(image):
    with pytest.raises(UnknownName, match=r"Unknown corruption 'frog'\. Did you mean 'fog'\?"):
        corrupt_image(image, "frog", 1, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"severity": 0}, "severity must be at least 1 and at most 5, got 0"),
        ({"severity": 6}, "severity must be at least 1 and at most 5, got 6"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"seed": 2**32}, "seed must be at least 0 and at most 4294967295"),
    ],
)
def test_settings_out_of_range_are_refused(image, settings, message):
    with pytest.raises(SettingError, match=f"corrupt_image: {message}"):
        corrupt_image(image, "fog", **{"severity": 1, "seed": 0, **settings})


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros((40, 40, 3)), r"must be bytes \(height, width, 3\), got float64 of shape"),
        (np.zeros((40, 40), dtype=np.uint8), r"got uint8 of shape \(40, 40\)"),
        (np.zeros((40, 31, 3), dtype=np.uint8), "at least 32 pixels high and wide, got 40 × 31"),
    ],
)
def test_what_cannot_be_corrupted_is_told(pixels, message):
    with pytest.raises(StreamError, match=message):
        corrupt_image(pixels, "fog", 1, seed=0)


def test_a_missing_package_says_how_to_install_it(image, monkeypatch):
    monkeypatch.setitem(sys.modules, "imagecorruptions", None)

    with pytest.raises(MissingExtra, match=r"pip install 'attakit\[corruptions\]'"):
        corrupt_image(image, "fog", 1, seed=0, parameters="imagenet")
