from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from attakit.report.images import encode_picture, is_picture


def decode(text):
    return Image.open(io.BytesIO(base64.b64decode(text)))


@pytest.mark.parametrize(
    ("shape", "seen"),
    [
        ((2, 1, 28, 28), True),
        ((2, 3, 8, 20), True),
        ((2, 2, 28, 28), False),
        ((2, 3, 1, 28), False),
        ((2, 28, 28), False),
        ((2, 16), False),
        ((0, 3, 8, 8), True),
    ],
)
def test_only_batches_of_grey_or_colour_images_can_be_seen(shape, seen):
    assert is_picture(torch.zeros(shape)) is seen


def test_without_normalisation_brightness_is_stretched():
    pixels = torch.full((1, 8, 8), -2.0)
    pixels[0, 0, 0], pixels[0, 0, 1] = 6.0, 2.0

    image = decode(encode_picture(pixels))

    assert image.mode == "L"
    assert np.asarray(image)[0, :3].tolist() == [255, 128, 0]


def test_given_normalisation_is_undone():
    colours = torch.tensor([0.2, 0.4, 0.6]).reshape(3, 1, 1).expand(3, 8, 8)
    mean, std = (0.5, 0.5, 0.5), (0.1, 0.2, 0.3)
    normalised = (colours - 0.5) / torch.tensor(std).reshape(3, 1, 1)

    image = decode(encode_picture(normalised, mean, std))

    assert image.mode == "RGB"
    assert image.getpixel((0, 0)) == (51, 102, 153)


def test_bytes_are_shown_as_they_are():
    pixels = torch.full((3, 8, 8), 7, dtype=torch.uint8)

    assert decode(encode_picture(pixels)).getpixel((3, 3)) == (7, 7, 7)


def test_large_images_shrink_and_keep_their_shape():
    assert decode(encode_picture(torch.rand(3, 256, 128))).size == (32, 64)


def test_numbers_that_are_not_finite_do_no_harm():
    pixels = torch.zeros(1, 8, 8)
    pixels[0, 0, 0], pixels[0, 1, 1], pixels[0, 2, 2] = float("nan"), float("inf"), 1.0

    assert decode(encode_picture(pixels)).getpixel((2, 2)) == 255


def test_an_even_image_is_black():
    assert decode(encode_picture(torch.ones(1, 8, 8))).getextrema() == (0, 0)
