import numpy as np
import pytest

from attakit.errors import SettingError
from attakit.stream import CORRUPTIONS, EXTRA_CORRUPTIONS, corrupt_image
from attakit.stream.corruption_parameters import CIFAR, TINY
from attakit.stream.small_corruptions import SMALL_CORRUPTIONS, corrupt_small

# Strengths of ImageNet-C at severity 3, where the package has the same corruption for comparison.
IMAGENET = {
    "gaussian_noise": (0.18,),
    "shot_noise": (12,),
    "impulse_noise": (0.09,),
    "speckle_noise": (0.35,),
    "gaussian_blur": (3,),
    "defocus_blur": (6, 0.5),
    "glass_blur": (1, 2, 3),
    "motion_blur": (15, 8),
    "snow": (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
    "brightness": (0.3,),
    "contrast": (0.2,),
    "saturate": (2, 0),
    "jpeg_compression": (15,),
    "pixelate": (0.4,),
}


def scene(side):
    """A picture with edges, shades and colours."""
    y, x = np.mgrid[:side, :side] / side
    shades = np.stack([x, y, (x + y) / 2], axis=2)
    shades[(x - 0.5) ** 2 + (y - 0.4) ** 2 < 0.06] = (0.9, 0.2, 0.1)
    return (255 * shades).astype(np.uint8)


def change(corrupted, pixels):
    return float(np.abs(corrupted.astype(float) - pixels).mean())


def test_all_but_spatter_have_five_strengths_for_both_small_sets():
    expected = {*CORRUPTIONS, *EXTRA_CORRUPTIONS} - {"spatter"}
    assert set(CIFAR) == set(TINY) == set(SMALL_CORRUPTIONS) == expected
    assert {len(values) for table in (CIFAR, TINY) for values in table.values()} == {5}


@pytest.mark.parametrize("name", IMAGENET)
def test_with_the_strengths_of_imagenet_pictures_are_those_of_the_package(name):
    pytest.importorskip("imagecorruptions")
    pixels = scene(128)
    theirs = corrupt_image(pixels, name, 3, seed=1, parameters="imagenet")
    ours = corrupt_small(pixels, name, IMAGENET[name], seed=1)
    assert change(ours, pixels) == pytest.approx(change(theirs, pixels), rel=0.15)
    assert ours.mean() == pytest.approx(theirs.mean(), rel=0.03)


@pytest.mark.parametrize("name", SMALL_CORRUPTIONS)
@pytest.mark.parametrize(("side", "parameters"), [(32, "cifar"), (64, "tiny")])
def test_small_images_get_the_strengths_of_the_set_of_their_size(name, side, parameters):
    pytest.importorskip("imagecorruptions")
    pixels = scene(side)
    usual = corrupt_image(pixels, name, 5, seed=3)
    assert usual.shape == pixels.shape
    assert np.array_equal(usual, corrupt_image(pixels, name, 5, seed=3, parameters=parameters))
    assert change(usual, pixels) > 0.5


def test_noise_on_32_pixels_is_that_of_cifar_and_not_of_imagenet():
    pytest.importorskip("imagecorruptions")
    grey = np.full((32, 32, 3), 128, dtype=np.uint8)
    assert corrupt_image(grey, "gaussian_noise", 5, seed=0).std() == pytest.approx(25.5, rel=0.05)
    weakest = corrupt_image(grey, "gaussian_noise", 1, seed=0, parameters="imagenet")
    assert weakest.std() == pytest.approx(0.08 * 255, rel=0.05)


def test_strength_grows_with_severity():
    pytest.importorskip("imagecorruptions")
    pixels = scene(32)
    for name in ("gaussian_noise", "defocus_blur", "fog", "contrast", "jpeg_compression"):
        changes = [change(corrupt_image(pixels, name, s, seed=0), pixels) for s in (1, 3, 5)]
        assert changes == sorted(changes), name


def test_the_global_generator_is_left_alone():
    before = np.random.get_state()[1].copy()
    corrupt_small(scene(32), "glass_blur", (0.4, 1, 2), seed=0)
    assert np.array_equal(before, np.random.get_state()[1])


def test_unknown_strengths_are_refused():
    with pytest.raises(SettingError, match="parameters must be"):
        corrupt_image(scene(32), "fog", 1, seed=0, parameters="coco")
