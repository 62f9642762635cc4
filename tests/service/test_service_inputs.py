"""Inputs: bytes to tensors, the same way for the server and the learner."""

from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from attakit.errors import SettingError, StreamError
from attakit.service.inputs import Inputs
from attakit.service.settings import InputTable
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
