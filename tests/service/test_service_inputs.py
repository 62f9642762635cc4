"""Inputs: bytes to tensors, the same way for the server and the learner."""

import struct
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from threading import Lock

import numpy as np
import pytest
import torch
from PIL import Image

from attakit.errors import SettingError, StreamError
from attakit.service import inputs as module
from attakit.service.inputs import Inputs
from attakit.settings.service import InputTable
from attakit.stream.images import ImageFolders


def file_of(image, form="PNG", **options):
    file = BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def test_an_image_becomes_the_tensor_that_streams_have(image_tree):
    folders = ImageFolders(image_tree, domains=["photo"], size=12)
    part = folders.parts["photo"]
    inputs = Inputs(InputTable(size=12))

    decoded = [inputs.decode((image_tree / name).read_bytes()) for name in part.names[:3]]

    torch.testing.assert_close(inputs.stack(decoded), part.load([0, 1, 2]), rtol=0, atol=0)


def test_one_channel_is_grey():
    inputs = Inputs(InputTable(size=2, channels=1, mean=(0.5,), std=(0.5,)))

    white = inputs.decode(file_of(Image.new("RGB", (4, 4), "white")))

    torch.testing.assert_close(white, torch.ones(1, 2, 2))


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_grey_file_becomes_the_same_as_a_coloured_one_with_its_pixels(orientation):
    grey = Image.effect_noise((9, 7), 80)
    exif = Image.Exif()
    exif[0x0112] = orientation
    inputs = Inputs(InputTable(size=5, channels=1, mean=(0.5,), std=(0.5,)))

    one, other = (inputs.decode(file_of(image, exif=exif)) for image in (grey, grey.convert("RGB")))

    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_of_a_moving_image_the_first_frame_counts():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("white", "black")]
    content = file_of(frames[0], "GIF", save_all=True, append_images=frames[1:])
    inputs = Inputs(InputTable(size=4, mean=(0, 0, 0), std=(1, 1, 1)))

    assert inputs.decode(content).min() == 1


def test_a_stack_of_images_has_channels_last_in_memory():
    inputs = Inputs(InputTable(size=4))
    image = inputs.decode(file_of(Image.new("RGB", (4, 4))))

    assert inputs.stack([image, image]).is_contiguous(memory_format=torch.channels_last)


def test_a_pickled_array_is_not_opened():
    file = BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    inputs = Inputs(InputTable(kind="array", shape=(1,)))

    with pytest.raises(StreamError, match="damaged"):
        inputs.decode(file.getvalue())


def test_other_formats_are_not_tried():
    inputs = Inputs(InputTable(size=4))

    with pytest.raises(StreamError, match="none of PNG, JPEG"):
        inputs.decode(file_of(Image.new("RGB", (4, 4)), "PPM"))


def test_a_picture_for_people_is_drawn_anew_and_not_too_large():
    content = file_of(Image.new("RGB", (3000, 1500)), "JPEG", comment=b"a secret")
    picture = Inputs(InputTable()).picture(content)

    assert b"secret" not in picture
    with Image.open(BytesIO(picture)) as image:
        assert image.format == "PNG"
        assert image.size == (1024, 512)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"kind": "array"}, "needs the shape"),
        ({"mean": (0.5,)}, "mean must hold one number"),
        ({"std": (0.5, 0.5)}, "std must hold one number"),
        ({"std": (0.5, 0.5, 0.0)}, "std must be greater than 0"),
    ],
)
def test_settings_that_do_not_fit_are_refused(table, words):
    with pytest.raises(SettingError, match=words):
        Inputs(InputTable(**table))


def tiff_with_tile(side):
    """A TIFF file of 16 × 16 pixels, made of one tile that is larger."""
    tags = [(256, 16), (257, 16), (258, 8), (259, 8), (262, 1), (277, 1), (322, side), (323, side)]
    tags += [(324, 8), (325, 8)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    head = b"II*\0" + struct.pack("<I", 16) + b"\0" * 8
    return head + struct.pack("<H", len(tags)) + entries + struct.pack("<I", 0)


def jpeg_with_scans(count):
    """A progressive JPEG file, one of whose scans is repeated so often."""
    content = file_of(Image.new("L", (16, 16), 100), "JPEG", progressive=True)
    second = content.index(b"\xff\xda", content.index(b"\xff\xda") + 2)
    third = content.index(b"\xff\xda", second + 2)
    return content[:third] + content[second:third] * count + content[third:]


def test_a_tile_larger_than_the_image_and_than_allowed_is_refused():
    with pytest.raises(StreamError, match="16384 × 16384 pixels, and at most 20000000 are allowed"):
        Inputs(InputTable(size=8)).decode(tiff_with_tile(16384))


def test_an_image_that_is_painted_over_and_over_is_refused():
    inputs = Inputs(InputTable(size=8))

    with pytest.raises(StreamError, match="more than 100 scans"):
        inputs.decode(jpeg_with_scans(100))
    assert inputs.decode(jpeg_with_scans(5)).shape == (3, 8, 8)


def test_images_that_come_together_may_claim_ten_times_as_many_pixels():
    inputs = Inputs(InputTable(size=2), pixels=100)
    large = file_of(Image.new("L", (10, 10)))
    small = file_of(Image.new("L", (2, 2)))

    assert len(inputs.read_images([large] * 10)) == 10
    with pytest.raises(StreamError, match="1004 pixels in total, and at most 1000 are allowed"):
        inputs.read_images([large] * 10 + [small])
    with pytest.raises(StreamError, match="it is none of"):
        inputs.read_images([small] * 10 + [b"no image"])


def test_few_large_images_are_decoded_at_the_same_time(monkeypatch):
    decoding, most, lock = 0, 0, Lock()

    def read(_image, size, grey):
        nonlocal decoding, most
        with lock:
            decoding += 1
            most = max(most, decoding)
        time.sleep(0.05)
        with lock:
            decoding -= 1
        return np.zeros((size, size, 3), dtype=np.uint8)

    monkeypatch.setattr(module, "read_pixels", read)
    inputs = Inputs(InputTable(size=2))
    large = file_of(Image.new("L", (1200, 1000)))

    with ThreadPoolExecutor(12) as threads:
        list(threads.map(inputs.read_image, [large] * 12))

    assert most <= 4
