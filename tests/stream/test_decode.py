"""Image files of every kind become RGB bytes."""

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from attakit.errors import StreamError
from attakit.stream.decode import decode_image


def decode(tmp_path, image: Image.Image, name: str = "image.png", **options) -> list[int]:
    image.save(tmp_path / name, **options)
    return decode_image(tmp_path / name, 4)[1, 1].tolist()


def palette_with_hole() -> Image.Image:
    image = Image.new("P", (4, 4), 0)
    image.putpalette([10, 20, 30, 40, 50, 60])
    return image


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("RGB", (4, 4), (10, 20, 30)), [10, 20, 30]),
        (Image.new("L", (4, 4), 77), [77, 77, 77]),
        (Image.new("1", (4, 4), 1), [255, 255, 255]),
        (Image.new("LA", (4, 4), (0, 0)), [255, 255, 255]),
        (Image.new("RGBA", (4, 4), (200, 0, 0, 255)), [200, 0, 0]),
        (Image.new("RGBA", (4, 4), (200, 0, 0, 0)), [255, 255, 255]),
        (Image.new("RGBA", (4, 4), (0, 0, 0, 51)), [204, 204, 204]),
        (palette_with_hole(), [10, 20, 30]),
        (Image.new("I;16", (4, 4), 65535), [255, 255, 255]),
        (Image.new("I;16", (4, 4), 257 * 100), [100, 100, 100]),
    ],
)
def test_every_colour_mode_becomes_rgb(tmp_path, image, expected):
    assert decode(tmp_path, image) == expected


def test_a_transparent_palette_colour_is_white(tmp_path):
    assert decode(tmp_path, palette_with_hole(), transparency=0) == [255, 255, 255]


def test_cmyk_becomes_rgb(tmp_path):
    white = decode(tmp_path, Image.new("CMYK", (4, 4), (0, 0, 0, 0)), "image.jpg")

    assert white == [255, 255, 255]


def test_wide_whole_numbers_are_read_as_sixteen_bits(tmp_path):
    pixels = np.full((4, 4), 257 * 100, dtype=np.int32)

    assert decode(tmp_path, Image.fromarray(pixels), "image.tif") == [100, 100, 100]


def test_the_cameras_orientation_is_applied(tmp_path):
    image = Image.new("RGB", (4, 4), "black")
    image.paste("white", (0, 0, 4, 2))
    exif = image.getexif()
    exif[0x0112] = 3  # upside down
    image.save(tmp_path / "image.png", exif=exif)

    pixels = decode_image(tmp_path / "image.png", 4)

    assert pixels[0].max() == 0
    assert pixels[3].min() == 255


def test_any_size_and_aspect_becomes_the_size_asked_for(tmp_path):
    Image.new("RGB", (31, 7), "red").save(tmp_path / "wide.png")

    assert decode_image(tmp_path / "wide.png", 5).shape == (5, 5, 3)


def test_what_was_decoded_cannot_be_written_to(tmp_path):
    Image.new("RGB", (4, 4)).save(tmp_path / "image.png")

    with pytest.raises(ValueError, match="read-only"):
        decode_image(tmp_path / "image.png", 4)[:] = 1


def damaged_files() -> dict[str, bytes]:
    return {
        "text.jpg": b"this is not an image",
        "empty.png": b"",
        "header.gif": b"GIF89a",
        "header.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
    }


@pytest.mark.parametrize("name", sorted(damaged_files()))
def test_a_damaged_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(damaged_files()[name])

    with pytest.raises(StreamError, match=f"ImageFolders: cannot read .*{name} as an image"):
        decode_image(tmp_path / name, 4)


@pytest.mark.parametrize("extension", ["jpg", "png", "gif", "tif", "bmp", "webp"])
@pytest.mark.parametrize("share", [0.2, 0.6])
def test_a_file_cut_short_is_named(tmp_path, extension, share):
    path = tmp_path / f"cut.{extension}"
    noise = np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])

    with pytest.raises(StreamError, match=f"cannot read .*cut.{extension}"):
        decode_image(path, 4)


def test_a_file_that_has_gone_is_named(tmp_path):
    with pytest.raises(StreamError, match=r"cannot read .*gone\.png"):
        decode_image(tmp_path / "gone.png", 4)


def test_floating_point_pixels_are_refused_with_the_reason(tmp_path):
    Image.new("F", (4, 4), 0.5).save(tmp_path / "heat.tif")

    with pytest.raises(StreamError, match="floating-point numbers with an unknown range"):
        decode_image(tmp_path / "heat.tif", 4)


def test_without_a_size_an_image_keeps_its_own(tmp_path):
    Image.new("RGB", (40, 33)).save(tmp_path / "wide.png")

    assert decode_image(tmp_path / "wide.png", None).shape == (33, 40, 3)


def test_who_complains_and_what_to_do_can_be_said(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"junk")

    with pytest.raises(StreamError, match=r"^corrupt: cannot read .*delete the file, or run\.$"):
        decode_image(tmp_path / "broken.png", None, who="corrupt", remedy="or run")


def test_too_many_pixels_and_too_long_texts_are_told_in_our_own_words(tmp_path, monkeypatch):
    texts = PngInfo()
    texts.add_text("about", "a" * 3_000_000, zip=True)
    Image.new("RGB", (40, 40)).save(tmp_path / "texts.png", pnginfo=texts)
    Image.new("RGB", (40, 40)).save(tmp_path / "large.png")

    with pytest.raises(StreamError, match=r"texts in its metadata are too long\. Repair"):
        decode_image(tmp_path / "texts.png", 4)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(StreamError, match=r"as an image: it has too many pixels\. Repair"):
        decode_image(tmp_path / "large.png", 4)
